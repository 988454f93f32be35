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
// had after the transaction Z. Snapshots of one cache never go back. Only of nodes that
// the client may not read a snapshot promises nothing: servers keep the events of such
// nodes to themselves. So that this holds, the goroutine of a cache keeps to a few
// rules.
//
//  1. An answer carries the zxid of the last transaction that the server had applied
//     (its head). An event of a transaction z comes before every answer with a head of
//     z or more, and after every answer with a smaller head. That is ZooKeeper's own
//     promise: a client sees an event before it sees the new data.
//  2. A reading of a node holds from some transaction, its floor, to its head. For data
//     the floor is Mzxid, for a list of children Pzxid. For a node that is not there
//     the floor is the head itself.
//  3. After its head a reading holds until the node changes. The cache has a watch on
//     every node that it has read. So each change comes as an event. An event says less
//     than its z: it gives a bound, and the reading holds at least until that bound.
//     The bound is the largest head that was seen before the event. From ZooKeeper 3.9
//     on events have their zxid, and the bound is z-1.
//  4. A reading with a bound is in doubt, until the node is read again with a head that
//     is larger than the bound. By rule 1 that reading is newer than the change. A
//     reading that was asked for after the event resolves the doubt in any case: if
//     its head is the bound, there was no change, and the comparison of another cache
//     has ended the watch.
//
// The cache takes all events that came before an answer, and then computes T, the
// smallest of the newest head and all bounds. It publishes its readings as the state at
// T if no floor is larger than T. Then each reading holds at T. T lies between its
// floor and its bound, or between its floor and the newest head, before which no event
// has put it in doubt. A node that the cache does not have is not there at T. Its
// creation would have been an event of its own, or of its parent's list, with a bound
// below T.
//
// After a reconnection, or after an overflow of the events, the cache sends a sync. It
// goes on only if the server's head is not below the last T. It then asks the server
// what has changed since the last head whose events were all taken (setWatches). The
// server answers with events for exactly the nodes with a larger Mzxid or Pzxid, and
// for nodes that are gone. Their bound is that head. Everything else still holds.
package cache
