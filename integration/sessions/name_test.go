package sessions_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
)

// answers replies to a DNS query with the addresses, always in this order.
func answers(query []byte, addrs []netip.Addr) []byte {
	const header, question = 12, 4
	end := header + slices.Index(query[header:], 0) + 1 + question // of the only question
	reply := slices.Clone(query[:end])
	wanted := binary.BigEndian.Uint16(query[end-question:])
	const v4, response = 1, 0x8180
	if wanted != v4 {
		addrs = nil
	}
	binary.BigEndian.PutUint16(reply[2:], response)
	for i, n := range []int{1, len(addrs), 0, 0} {
		binary.BigEndian.PutUint16(reply[4+2*i:], uint16(n))
	}
	for _, a := range addrs {
		reply = append(reply, 0xc0, header, 0, v4, 0, 1, 0, 0, 0, 0, 0, 4) // the name of the question, no time to live
		reply = append(reply, a.AsSlice()...)
	}
	return reply
}

// resolve makes the resolver of this process know one name, by a DNS server of its own.
func resolve(t *testing.T, addrs []netip.Addr) {
	t.Helper()
	dns, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		query := make([]byte, 512)
		for {
			n, from, err := dns.ReadFrom(query)
			if err != nil {
				return
			}
			if _, err := dns.WriteTo(answers(query[:n], addrs), from); err != nil {
				return
			}
		}
	})
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", dns.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = dns.Close()
		serving.Wait()
	})
}

// A hundred clients have one name for three servers, as in Kubernetes, and the server whose
// address comes first is sick. All are connected within three seconds, to both others.
func TestNameWithASickServer(t *testing.T) {
	for what, sicken := range map[string]func(context.Context, *harness.Node) error{
		"silent": func(ctx context.Context, n *harness.Node) error { return n.Pause(ctx) },
		"gone":   func(ctx context.Context, n *harness.Node) error { return n.Kill(ctx) },
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			e := harness.StartEnsemble(ctx, t, 3)
			var addrs []netip.Addr
			for _, n := range e.Nodes() {
				addrs = append(addrs, netip.MustParseAddr(n.IP()))
			}
			resolve(t, addrs)
			if err := sicken(ctx, e.Node(1)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.AwaitServing(ctx, e.Node(2), e.Node(3)); err != nil {
				t.Fatal(err)
			}
			const clients, timeout, limit = 100, 15 * time.Second, 3 * time.Second
			var mu sync.Mutex
			var times []time.Duration
			var all []*client.Client
			spread := map[string]int{}
			var connecting sync.WaitGroup
			begun := time.Now()
			for range clients {
				connecting.Go(func() {
					c, err := client.Connect(ctx, "zookeeper.test.:2181", client.WithSessionTimeout(timeout),
						client.WithLogger(slog.New(slog.DiscardHandler)))
					took := time.Since(begun)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					all, times = append(all, c), append(times, took)
				})
			}
			connecting.Wait()
			for _, n := range e.Nodes()[1:] {
				cons, err := n.FourLetter(ctx, "cons")
				if err != nil {
					t.Fatal(err)
				}
				spread[n.IP()] = strings.Count(cons, "sid=0x")
			}
			for _, c := range all {
				if err := c.CloseContext(ctx); err != nil {
					t.Error(err)
				}
			}
			if len(times) == 0 {
				t.Fatal("no client is connected")
			}
			slices.Sort(times)
			t.Logf("connected after %v at the median, %v at the latest; clients of each server: %v", times[len(times)/2], times[len(times)-1], spread)
			if times[len(times)-1] > limit {
				t.Errorf("connected after %v", times)
			}
			for server, n := range spread {
				if n < clients/4 {
					t.Errorf("%s has %d of %d clients", server, n, clients)
				}
			}
		})
	}
}
