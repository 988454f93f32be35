package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// names is a resolver and the network behind it: each address is a member of an ensemble,
// or does what sick says. It notes what is dialed.
type names struct {
	crew
	hosts map[string][]string // the addresses of each name, in the resolver's order
	sick  map[string]func(ctx context.Context) (net.Conn, error)

	mu     sync.Mutex
	dialed []string
}

func (n *names) lookup(_ context.Context, _, host string) (found []netip.Addr, err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.hosts[host] {
		found = append(found, netip.MustParseAddr(a))
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

// open connects to connectString. The member zkN has the address 127.0.0.N.
func (n *names) open(name, connectString string, opts ...client.Option) (*client.Client, error) {
	link := n.e.Client(name)
	opts = append([]client.Option{
		testrig.Quiet(), client.WithSessionTimeout(6 * time.Second), client.WithConnectTimeout(20 * time.Second),
		client.WithNet(n.lookup, func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			n.Check(err)
			n.mu.Lock()
			n.dialed = append(n.dialed, host)
			sick := n.sick[host]
			n.mu.Unlock()
			if sick != nil {
				return sick(ctx)
			}
			return link.DialContext(ctx, network, address)
		}),
	}, opts...)
	c, err := client.Connect(n.Ctx, connectString, opts...)
	if err == nil {
		n.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(n.Ctx), time.Minute)
			defer cancel()
			_ = c.CloseContext(ctx) // the test looks at what matters to it
		})
	}
	return c, err
}

// How a server can be sick.
var (
	hangsUp = func(context.Context) (net.Conn, error) { // as a server without a quorum does
		a, b := net.Pipe()
		return a, b.Close()
	}
	silent = func(context.Context) (net.Conn, error) { // as one does whose process is stopped
		a, b := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, b) }() // ends when the client closes a
		return a, nil
	}
	filtered = func(ctx context.Context) (net.Conn, error) { // as a firewall does
		<-ctx.Done()
		return nil, ctx.Err()
	}
	refuses = func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") }
)

// A name is all of its addresses. If the first of them is sick, the client gets to the others,
// and a crowd of clients is spread over them. That takes 3 s at most with the default timeout.
func TestNameOfSeveralServers(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		sick           func(context.Context) (net.Conn, error)
		timeout, limit time.Duration
	}{
		"hangs up":       {hangsUp, 6 * time.Second, time.Second},
		"silent":         {silent, 6 * time.Second, 2100 * time.Millisecond},  // 1.5 s, a pause and a dial
		"filtered":       {filtered, 6 * time.Second, 800 * time.Millisecond}, // the other addresses have their parts of the dial's 2 s
		"refuses":        {refuses, 6 * time.Second, 100 * time.Millisecond},
		"hangs up, 15 s": {hangsUp, 15 * time.Second, 2 * time.Second},
		"silent, 15 s":   {silent, 15 * time.Second, 2700 * time.Millisecond},
		"filtered, 15 s": {filtered, 15 * time.Second, 1900 * time.Millisecond},
		"silent, 40 s":   {silent, 40 * time.Second, 2700 * time.Millisecond},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ensemble(t, func(r crew) {
				n := &names{
					crew:  r,
					hosts: map[string][]string{"zk.test": {"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
					sick:  map[string]func(context.Context) (net.Conn, error){"127.0.0.1": tt.sick},
				}
				_, err := r.e.AwaitLeader(r.Ctx)
				r.Check(err)
				const crowd = 100
				var wg sync.WaitGroup
				for i := range crowd {
					wg.Go(func() {
						begun := time.Now()
						_, err := n.open(fmt.Sprint(i), "zk.test", client.WithSessionTimeout(tt.timeout))
						if took := time.Since(begun); err != nil || took > tt.limit {
							r.Errorf("client %d: after %v: %v", i, took, err)
						}
					})
				}
				wg.Wait()
				for i := 2; i <= 3; i++ {
					if there := r.e.Server(i).ConnCount(); there < crowd/4 {
						r.Errorf("%d of %d clients are at server %d", there, crowd, i)
					}
				}
				first := 0
				for _, host := range n.dialed {
					if host == "127.0.0.1" {
						first++
					}
				}
				if first == 0 || first > crowd {
					r.Errorf("the sick server was dialed %d times by %d clients", first, crowd)
				}
			})
		})
	}
}

// Each dial of a name begins with the address whose last dial is longest ago, in whatever
// order the resolver has them. New addresses come first, and old ones are dialed no more.
func TestNameIsResolvedAtEveryDial(t *testing.T) {
	t.Parallel()
	ensemble(t, func(r crew) {
		n := &names{crew: r, sick: map[string]func(context.Context) (net.Conn, error){}}
		for i := range 6 {
			n.sick[fmt.Sprintf("127.0.0.%d", i)] = hangsUp
		}
		setTo := func(addrs ...string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.hosts = map[string][]string{"zk.test": addrs}
		}
		// dials waits for more dials. Each time the resolver has another order.
		dials := func(more int) []string {
			n.mu.Lock()
			n.dialed = nil
			n.mu.Unlock()
			for {
				time.Sleep(time.Millisecond)
				n.mu.Lock()
				all := n.dialed
				if addrs := n.hosts["zk.test"]; len(all)%2 == 1 {
					slices.Reverse(addrs)
				}
				n.mu.Unlock()
				if len(all) >= more {
					return all[:more]
				}
			}
		}
		setTo("127.0.0.1", "127.0.0.2", "127.0.0.3")
		_, err := n.open("a", "zk.test", client.WithLazyConnect())
		r.Check(err)
		all := dials(9)
		for i, a := range all[3:] {
			if a != all[i] {
				t.Fatalf("dialed %v", all)
			}
		}
		setTo("127.0.0.3", "127.0.0.4", "127.0.0.5")
		all = dials(6)
		if slices.Max(all[:2]) != "127.0.0.5" || slices.Min(all[:2]) != "127.0.0.4" || all[2] != "127.0.0.3" || !slices.Equal(all[:3], all[3:]) {
			t.Errorf("then dialed %v", all)
		}
		setTo("127.0.0.1", "127.0.0.2")
		n.mu.Lock()
		clear(n.sick)
		n.mu.Unlock()
		time.Sleep(2 * time.Second)
		if here := r.e.Server(1).ConnCount() + r.e.Server(2).ConnCount(); here != 1 {
			t.Errorf("%d connections after %v", here, n.dialed)
		}
	})
}
