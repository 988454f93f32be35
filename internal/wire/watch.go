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

// ArmWatch makes the next read of kind and path leave with its watch flag set.
// go-zookeeper is not told, so it keeps no watch channels and sends no
// setWatches; the event arrives at its callback like any other.
//
// The mark stays until a request consumes it or a connection goes down: arm
// again after OnDown. Arming twice is arming once.
func (l *Link) ArmWatch(kind WatchKind, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed[kind] == nil {
		l.armed[kind] = make(map[string]string)
	}
	l.armed[kind][path] = path
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

// flagWatch consumes the mark for the read in frame and returns a copy with the
// flag set; the frame itself belongs to go-zookeeper. Without a mark it returns
// frame. The caller holds l.mu and the turn to write.
func (c *conn) flagWatch(kind WatchKind, frame []byte) []byte {
	path, end := requestPath(frame)
	if path == nil || end != len(frame)-1 {
		return frame
	}
	// The value is the key: deleting by it does not allocate another string.
	key, ok := c.l.armed[kind][string(path)]
	if !ok {
		return frame
	}
	delete(c.l.armed[kind], key)
	c.scratch = append(c.scratch[:0], frame...)
	c.scratch[end] = 1
	return c.scratch
}
