package client_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// Before ZooKeeper 3.9 a recursive watch takes the place of a one-shot watch of
// the children, and tells of the children in another way.
func TestChangesDeepenedUnderOneShot(t *testing.T) {
	t.Parallel()
	onReleases(t, func(r *rig, _ zktest.Version) {
		c := r.Connect("a")
		r.create("/p", "")
		r.create("/q", "")
		_, _, alone, err := c.ChildrenW(r.Ctx, "/p")
		r.Check(err)
		r.watch(c, "/p", client.Recursive())
		r.create("/p/c", "")
		r.await("the children of /p", alone.Done())

		r.watch(c, "/q")
		_, _, covered, err := c.ChildrenW(r.Ctx, "/q")
		r.Check(err)
		r.watch(c, "/q", client.Recursive())
		r.create("/q/c", "")
		r.await("the children of /q", covered.Done())
	})
}

// inserting is a connection whose peer sends one frame more.
type inserting struct {
	net.Conn
	frame *atomic.Pointer[[]byte]
	rest  []byte
}

func (c *inserting) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c.Conn, body); err != nil {
			return 0, err
		}
		c.rest = slices.Concat(head, body)
		if f := c.frame.Swap(nil); f != nil {
			c.rest = append(*f, c.rest...)
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// notification is the frame of one.
func notification(path string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+8+4+4+4+4+len(path)))
	b = binary.BigEndian.AppendUint32(b, 0xffffffff)         // xid
	b = binary.BigEndian.AppendUint64(b, 0xffffffffffffffff) // zxid
	b = binary.BigEndian.AppendUint32(b, 0)                  // code
	b = binary.BigEndian.AppendUint32(b, 3)                  // data changed
	b = binary.BigEndian.AppendUint32(b, 3)                  // connected
	b = binary.BigEndian.AppendUint32(b, uint32(len(path)))
	return append(b, path...)
}

// A notification of a path that is none harms no watch.
func TestChangesOfNoPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "p", "p/c", "/", "//", "/p//", "/p/"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var frame atomic.Pointer[[]byte]
				link := r.Srv.Client("a")
				c := r.Connect("a", client.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
					nc, err := link.DialContext(ctx, network, addr)
					return &inserting{Conn: nc, frame: &frame}, err
				}))
				r.create("/p", "")
				w := r.watch(c, "/p", client.Recursive())
				f := notification(path)
				frame.Store(&f)
				_, _, err := c.Get(r.Ctx, "/p")
				r.Check(err)
				r.Check(r.Srv.SetData("/p", nil))
				for change, err := range w.All() {
					r.Check(err)
					if change.Path == "/p" && change.Kind == client.ChangeData {
						break
					}
				}
			})
		})
	}
}
