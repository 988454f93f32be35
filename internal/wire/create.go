package wire

import "slices"

// Create follows one create request through the wire. Its methods are safe for
// concurrent use and never wait.
type Create struct {
	l       *Link
	path    string
	leaving chan struct{}

	// Guarded by l.mu.
	sent     bool
	answered bool
	zxid     int64
}

// TrackCreate follows the next request to create exactly path: create, create2,
// createContainer, createTTL, or a multi that begins with a create of it. Several
// interests in one path take one request each, oldest first. The interest
// outlives connections; call [Create.Forget] when it is no longer needed.
func (l *Link) TrackCreate(path string) *Create {
	t := &Create{l: l, path: path, leaving: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.creates[path] = append(l.creates[path], t)
	return t
}

// Leaving returns a channel that is closed when the request is handed to the
// network, before it is written: whatever is enqueued afterwards is behind it
// on the same connection. It stays open if the request never leaves.
func (t *Create) Leaving() <-chan struct{} { return t.leaving }

// Sent reports whether the request left, or may have left: after a failure the
// node may exist if and only if Sent is true.
func (t *Create) Sent() bool {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.sent
}

// Zxid returns the zxid in the header of the reply, which is the new node's
// czxid. It is false if no reply was seen or the reply was an error.
func (t *Create) Zxid() (int64, bool) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	return t.zxid, t.answered
}

// Forget gives up the interest. What was seen before stays readable. It may be
// called more than once.
func (t *Create) Forget() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	line := t.l.creates[t.path]
	if i := slices.Index(line, t); i >= 0 {
		t.l.setCreates(t.path, slices.Delete(line, i, i+1))
	}
}

func (l *Link) setCreates(path string, line []*Create) {
	if len(line) == 0 {
		delete(l.creates, path)
		return
	}
	l.creates[path] = line
}

// claimCreate returns the oldest interest in the request in frame, nil if there
// is none, and marks it sent. The caller holds l.mu.
func (l *Link) claimCreate(op int32, frame []byte) *Create {
	if len(l.creates) == 0 {
		return nil
	}
	var path []byte
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		path, _ = requestPath(frame)
	case opMulti:
		path = firstCreated(frame)
	}
	line := l.creates[string(path)]
	if len(line) == 0 {
		return nil
	}
	t := line[0]
	l.setCreates(t.path, slices.Delete(line, 0, 1))
	t.sent = true
	close(t.leaving)
	return t
}

// firstCreated returns the path of a multi's first part if that is a create.
func firstCreated(frame []byte) []byte {
	const at = lengthSize + requestHeader
	if len(frame) < at+multiHeader || be32(frame[at:]) != opCreate && be32(frame[at:]) != opCreate2 {
		return nil
	}
	return pathAt(frame, at+multiHeader)
}
