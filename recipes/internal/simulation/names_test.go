package simulation_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"sync"
)

const (
	namePrefix = "_c_"
	nameLength = 36 // of a UUID
)

// names maps the UUIDs that a client draws to UUIDs that go over the wire, and
// back. The seed decides the latter.
type names struct {
	client string
	seed   uint64

	mu      sync.Mutex // guards the rest
	out, in map[string]string
}

func newNames(seed uint64, client string) *names {
	return &names{client: client, seed: seed, out: map[string]string{}, in: map[string]string{}}
}

// eachName calls f with every UUID in b, which f may change.
func eachName(b []byte, f func([]byte)) {
	for {
		i := bytes.Index(b, []byte(namePrefix))
		if i < 0 || len(b) < i+len(namePrefix)+nameLength {
			return
		}
		b = b[i+len(namePrefix):]
		f(b[:nameLength])
		b = b[nameLength:]
	}
}

// outward returns a frame as it goes over the wire. Names that a client has
// from the server, of others, stay as they are.
func (n *names) outward(frame []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	eachName(frame, func(name []byte) {
		own := string(name)
		if n.in[own] != "" || bytes.HasSuffix(name, []byte(wireSuffix)) {
			return
		}
		if n.out[own] == "" {
			h := fnv.New64a()
			_, _ = fmt.Fprint(h, n.seed, n.client, len(n.out))
			v := h.Sum64()
			// The version says whose library it is, and what may be done with the node.
			wire := fmt.Sprintf("%08x-%04x-%s%02x-8000-%s", uint32(v), uint16(v>>32), own[14:16], v>>56, wireSuffix)
			n.out[own], n.in[wire] = wire, own
		}
		copy(name, n.out[own])
	})
	return frame
}

// wireSuffix marks the names that go over the wire.
const wireSuffix = "00000000d0ce"

// inward returns a frame as the client is to see it.
func (n *names) inward(frame []byte) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	eachName(frame, func(name []byte) {
		if own := n.in[string(name)]; own != "" {
			copy(name, own)
		}
	})
	return frame
}

// onWire returns a path of the client as the server knows it.
func (n *names) onWire(path string) string { return string(n.outward([]byte(path))) }
