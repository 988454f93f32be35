// Package cache keeps pictures of nodes in memory, up to date: [Value] of one node,
// [Children] of a directory, [Tree] of a subtree. It writes nothing and makes no nodes.
//
//	tree, err := cache.NewTree(c, "/config", cache.Text) // c is of client.Connect
//	if err != nil {
//		return err
//	}
//	if err := tree.Start(ctx); err != nil { // returns with the first snapshot
//		return err
//	}
//	defer tree.Close()
//	node, ok := tree.Snapshot().Get("/config/limit") // a read of memory; node.Value
//
// Where to go on:
//
//   - To hear of changes: Changes of each cache; see below.
//   - Data as a type of yours: [JSON], or any [Codec]. Several types in one tree:
//     [NewTypedTree], as Curator's modeled caches.
//   - Is it current? Tree.State, Tree.WaitSynced, [Snapshot.AsOf].
//   - Less of a tree: [WithDepth], [WithFilter], [WithLimits].
//   - How to do common things: docs/cache.md. From Curator's NodeCache,
//     PathChildrenCache, TreeCache and CuratorCache: docs/curator-caches.md.
//
// # Changes
//
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
// the rules. They stand on ZooKeeper's own promises: a client sees the event of a change before
// it sees the change, and all reads of one request (multiRead) show the state after one
// transaction. After a reconnection everything is read again.
//
// # How old a snapshot is
//
// A cache that is [Synced] has heard of no change that has waited for its snapshot for longer
// than a second, or than three rounds if these take longer. A change that waits longer makes the
// cache [Stale]. To that comes the time in which a cut connection goes unnoticed: two thirds of
// the session timeout at most. [Tree.Wait] asks the servers.
package cache
