package recipes_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// Locks of a client without a server can be made and waited for. They are granted
// when there is a server, and their nodes name their owner as usual.
func TestLazyClient(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*rig, *client.Client) func() (string, error){
		"mutex": func(r *rig, c *client.Client) func() (string, error) {
			m := r.mutex(c)
			return func() (string, error) {
				h, err := m.Acquire(r.Ctx)
				return h.Path(), err
			}
		},
		"several": func(r *rig, c *client.Client) func() (string, error) {
			second, err := recipes.NewInterProcessMutex(c, "/second")
			r.Check(err)
			m, err := recipes.NewInterProcessMultiLock(r.mutex(c), second)
			r.Check(err)
			return func() (string, error) {
				h, err := m.Acquire(r.Ctx)
				return h.Holds()[0].Path(), err
			}
		},
		"semaphore": func(r *rig, c *client.Client) func() (string, error) {
			s := r.semaphore(c, 1)
			return func() (string, error) {
				l, err := s.Acquire(r.Ctx, 1)
				return l.Path(), err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				const want = "10.0.0.7"
				r.Srv.Client("a").Refuse()
				acquire := open(r, r.Connect("a", client.WithLazyConnect(), client.WithDialer(r.addressed("a"))))
				time.AfterFunc(time.Minute, func() { r.Srv.Client("a").Accept() })
				begun := time.Now()
				path, err := acquire()
				r.Check(err)
				if took := time.Since(begun); took < time.Minute {
					r.Errorf("took %v", took)
				}
				if n, _ := r.Srv.Node(path); string(n.Data) != want {
					r.Errorf("node %s says %q, want %q", path, n.Data, want)
				}
			})
		})
	}
}

// addressed dials from an address as TCP has it.
func (r *rig) addressed(name string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := r.Srv.Client(name).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return fromAddress{conn}, nil
	}
}

type fromAddress struct{ net.Conn }

func (fromAddress) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 1} }
