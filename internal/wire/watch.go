package wire

// WatchKind says which request a watch is left with.
type WatchKind int

// The requests that can leave a watch.
const (
	DataWatch   WatchKind = iota // getData
	ExistsWatch                  // exists
	ChildWatch                   // getChildren2

	watchKinds = 3
)

// ArmWatch makes every read of kind and path leave with its watch flag set,
// until the returned function is called, once. go-zookeeper is not told, so it
// keeps no watch channels and sends no setWatches; the event arrives at its
// callback like any other.
//
// The mark is not used up by the first read: that could be another caller's,
// which finds no node and leaves no watch, while the read that counts on one
// follows without. It outlives connections; the watch it left does not.
func (l *Link) ArmWatch(kind WatchKind, path string) (disarm func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed[kind] == nil {
		l.armed[kind] = make(map[string]int)
	}
	l.armed[kind][path]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.armed[kind][path]--; l.armed[kind][path] <= 0 {
			delete(l.armed[kind], path)
		}
	}
}

// watchKindOf returns the kind of watch that a request of type op can leave.
func watchKindOf(op int32) (WatchKind, bool) {
	switch op {
	case opGetData:
		return DataWatch, true
	case opExists:
		return ExistsWatch, true
	case opGetChildren2:
		return ChildWatch, true
	}
	return 0, false
}

// flagWatch returns a copy of the read in frame with its watch flag set if its
// path is armed; the frame itself belongs to go-zookeeper. Without a mark it
// returns frame. The caller holds l.mu and the turn to write.
func (c *conn) flagWatch(kind WatchKind, frame []byte) []byte {
	path, end := requestPath(frame)
	if path == nil || end != len(frame)-1 || c.l.armed[kind][string(path)] == 0 {
		return frame
	}
	c.scratch = append(c.scratch[:0], frame...)
	c.scratch[end] = 1
	return c.scratch
}
