package wire

// Watches are what an OpSetWatches leaves on a server: one-shot watches on nodes that
// have not changed since a transaction. Where a node has changed or is gone, the
// server sends the event at once, and leaves no watch.
type Watches struct {
	Since    int64    // the transaction
	Data     []string // paths; the watch that getData leaves
	Children []string // the watch that getChildren leaves
}

// append appends the body of the request (SetWatches of ZooKeeper's jute file).
func (w *Watches) append(b []byte) []byte {
	b = putPaths(put64(b, w.Since), w.Data)
	return putPaths(putPaths(b, nil), w.Children) // no watches of exists
}

func putPaths(b []byte, paths []string) []byte {
	b = put32(b, int32(len(paths)))
	for _, path := range paths {
		b = putBytes(b, path)
	}
	return b
}
