// Package cache keeps pictures of nodes in memory: [Value] of one node, [Children] of a
// directory, [Tree] of a subtree. They are Curator's NodeCache, PathChildrenCache,
// TreeCache and CuratorCache. A cache writes nothing and makes no nodes. [NewTypedTree]
// makes a tree of nodes of several types, as Curator's modeled caches do.
//
// Readers read a [Snapshot], which costs a load of a pointer, or follow the changes:
//
//	tree, err := cache.NewTree(c, "/config", cache.Text)
//	if err != nil {
//		return err
//	}
//	if err := tree.Start(ctx); err != nil {
//		return err
//	}
//	defer tree.Close()
//	for change, err := range tree.Changes(ctx) {
//		if err != nil {
//			return err
//		}
//		if change.Kind == cache.Began {
//			useAll(change.Snapshot) // what is there already
//			continue
//		}
//		log.Println(change.Kind, change.Path)
//	}
//
// # What a snapshot is
//
// A snapshot with Zxid Z has exactly the nodes, and exactly the data, that the servers
// had after the transaction Z. Snapshots of one cache go back only if the servers do, as after
// a restore from a backup; [Gap] says so. Only of nodes that the client may not read a snapshot
// promises nothing: servers keep the events of such nodes to themselves.
//
// The nodes are read in rounds, by requests that read many. The type rounds in this package has
// the rules from which the promise follows. They stand on ZooKeeper's own promises: a client
// sees the event of a change before it sees the change, and all reads of one request (multiRead)
// show the state after one transaction. After a reconnection everything is read again, so
// nothing that was true of a lost connection is taken for true.
//
// # How old a snapshot is
//
// A cache that is [Synced] has heard of no change that has waited for its snapshot for longer
// than a second, or than three rounds if these take longer. A change that waits longer makes the
// cache [Stale]. To that comes the time in which a cut connection goes unnoticed: two thirds of
// the session timeout at most. [Tree.Wait] asks the servers.
package cache
