package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
)

// after is a dial that takes a while before it goes on.
func after(ctx context.Context, takes time.Duration, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	select {
	case <-time.After(takes):
		return dial(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// One server is well, and its dial takes 2 s, as over a far link. The others are down. The client
// is connected when it has dialed that server for the first time.
func TestSlowServerAmongDead(t *testing.T) {
	t.Parallel()
	const slow = 2 * time.Second
	for what, sick := range map[string]func(context.Context) (net.Conn, error){"refuse": refuses, "hang up": hangsUp} {
		for _, n := range []int{2, 3, 5} {
			t.Run(fmt.Sprint(n, " servers ", what), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					link := r.Srv.Client("a")
					var list []string
					for i := range n {
						list = append(list, fmt.Sprint("zk", i))
					}
					var well atomic.Int32
					_, err := r.Open(strings.Join(list, ","), "a", client.WithSessionTimeout(15*time.Second), client.WithConnectTimeout(time.Minute),
						client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
							if address != "zk0:2181" {
								return sick(ctx)
							}
							well.Add(1)
							return after(ctx, slow, func(ctx context.Context) (net.Conn, error) { return link.DialContext(ctx, network, address) })
						}))
					r.Check(err)
					if n := well.Load(); n != 1 {
						t.Errorf("the server that is well was dialed %d times", n)
					}
				})
			})
		}
	}
}

// A client with a session of 4 s loses its server. Two servers take connections slowly and are
// silent, and the third is well. All are tried before the session expires.
func TestReconnectBesideSlowSilentServers(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		link := r.Srv.Client("a")
		var lost atomic.Bool
		var dials atomic.Int32
		c, err := r.Open("zk0,zk1,zk2", "a", client.WithSessionTimeout(4*time.Second), client.WithConnectTimeout(time.Minute),
			client.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				if !lost.Load() || dials.Add(1) > 2 {
					return link.DialContext(ctx, network, address)
				}
				return after(ctx, 900*time.Millisecond, func(context.Context) (net.Conn, error) {
					near, far := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, far) }() // ends with near
					return near, nil
				})
			}))
		r.Check(err)
		s, err := c.Session(r.Ctx)
		r.Check(err)
		lost.Store(true)
		link.Cut()
		time.Sleep(10 * time.Second)
		if err := s.Err(); err != nil {
			t.Errorf("after %d dials: %v", dials.Load(), err)
		}
	})
}

// A connection to each address of a name takes 0.6 s, and the first server hangs up.
func TestNameOfSlowServers(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		n := &names{crew: r, hosts: map[string][]string{"zk.test": {"127.0.0.1", "127.0.0.2", "127.0.0.3"}}, sick: map[string]func(context.Context) (net.Conn, error){}}
		for i := 1; i <= 3; i++ {
			link, host := r.e.Client("c"), fmt.Sprint("127.0.0.", i)
			n.sick[host] = func(ctx context.Context) (net.Conn, error) {
				return after(ctx, 600*time.Millisecond, func(ctx context.Context) (net.Conn, error) {
					if i == 1 {
						return hangsUp(ctx)
					}
					return link.DialContext(ctx, "tcp", host+":2181")
				})
			}
		}
		_, err := r.e.AwaitLeader(r.Ctx)
		r.Check(err)
		var crowd sync.WaitGroup
		for range 30 {
			crowd.Go(func() {
				begun := time.Now()
				_, err := n.open("c", "zk.test", client.WithSessionTimeout(15*time.Second), client.WithConnectTimeout(time.Minute))
				if took := time.Since(begun); err != nil || took > 3*time.Second {
					r.Errorf("after %v: %v", took, err)
				}
			})
		}
		crowd.Wait()
	})
}
