package cache_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// silent is a connection on which the server sends no events of creations.
type silent struct {
	net.Conn

	rest []byte // of the frames that were read
}

func (c *silent) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, head); err != nil {
			return 0, err
		}
		frame := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return 0, err
		}
		const notification, header, created = "\xff\xff\xff\xff", 16, "\x00\x00\x00\x01"
		if bytes.HasPrefix(frame, []byte(notification)) && string(frame[header:header+4]) == created {
			continue
		}
		c.rest = slices.Concat(head, frame)
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// A server that has just joined an ensemble may have nodes already, before it runs the
// transactions that make them: its snapshot was written while the leader went on. It
// sends no events then. A cache finds such nodes below any node that it reads.
func TestNodesWithoutEvents(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		link := r.Srv.Client("silent")
		c := r.Connect("silent", client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := link.DialContext(ctx, network, address)
			return &silent{Conn: conn}, err
		}))
		r.create("/app", "")
		tree, err := cache.NewTree(c, "/app", cache.Text)
		r.Check(err)
		r.Check(tree.Start(r.Ctx))
		defer tree.Close()
		r.create("/app/made", "")
		r.create("/app/made/below", "here")
		stat, err := r.w.Set(r.Ctx, "/app/made", []byte("set"), client.AnyVersion)
		r.Check(err)
		now, err := tree.Wait(r.Ctx, stat.Mzxid)
		r.Check(err)
		if n, ok := now.Get("/app/made/below"); !ok || n.Value != "here" {
			r.Errorf("the cache has %+v, %v", n, ok)
		}
	})
}
