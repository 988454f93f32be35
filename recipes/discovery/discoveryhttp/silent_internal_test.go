package discoveryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
)

// network is one in virtual time, some of whose addresses never answer.
type network struct {
	*testrig.Rig
	d *discovery.ServiceDiscovery
	p *discovery.ServiceProvider
	c *http.Client

	mu     sync.Mutex
	silent map[string]bool // by address
	dials  map[string]int
	served chan net.Conn
}

// silence plays with an HTTP client of a service whose instances are called a, b and so on; those
// are silent.
func silence(t *testing.T, instances, silent string, play func(*network), opts ...discovery.ProviderOption) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) {
		n := &network{Rig: r, silent: map[string]bool{}, dials: map[string]int{}, served: make(chan net.Conn)}
		var err error
		n.d, err = discovery.New(r.Connect("a"), "/services", discovery.CuratorMap())
		r.Check(err)
		for id := range strings.SplitSeq(instances, "") {
			_, err := n.d.Register(r.Ctx, discovery.ServiceInstance{Service: "orders", ID: id, Address: id, Port: 80})
			r.Check(err)
			n.silent[id+":80"] = strings.Contains(silent, id)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "ok") })}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Serve(n)
		}()
		defer func() {
			_ = s.Close()
			<-done
		}()
		n.p, err = n.d.Provider("orders", opts...)
		r.Check(err)
		r.Check(n.p.Start(r.Ctx))
		defer n.p.Close()
		rt, err := New(n.p)
		r.Check(err)
		rt.dial = n.dial
		defer rt.CloseIdleConnections()
		n.c = &http.Client{Transport: rt}
		play(n)
	})
}

// Accept is for the server.
func (n *network) Accept() (net.Conn, error) {
	conn, ok := <-n.served
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close is for the server.
func (n *network) Close() error { close(n.served); return nil }

// Addr is for the server.
func (*network) Addr() net.Addr { return &net.TCPAddr{} }

// dial never answers for those that are silent.
func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials[address]++
	silent := n.silent[address]
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
	}
	near, far := net.Pipe()
	n.served <- far
	return near, nil
}

// post sends a request that may not be repeated, without a deadline, and returns how long that took.
func (n *network) post(ctx context.Context) (time.Duration, error) {
	n.Helper()
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://orders/x", strings.NewReader("x"))
	n.Check(err)
	resp, err := n.c.Do(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	return time.Since(began), err
}

func (n *network) posts(times int) (took time.Duration) {
	n.Helper()
	for range times {
		one, err := n.post(context.WithoutCancel(n.Ctx))
		n.Check(err)
		took += one
	}
	return took
}

// Instances that do not answer a dial cost the limit of a dial each, once, and then with each probe.
// That is so also for a caller who comes to each of them rarely.
func TestSilentInstances(t *testing.T) {
	t.Parallel()
	silence(t, "abcdefghijklmnopqrstu", "abcdefghij", func(n *network) {
		took := n.posts(200)
		sum := 0
		for address := range n.silent {
			if n.silent[address] {
				sum += n.dials[address]
			}
		}
		if most := 4 * 10; sum > most || took > dialLimit*time.Duration(most) { // 30 s after a failure, then 60 s, and so on
			n.Errorf("200 requests took %v, and %d dials to 10 instances that do not answer", took, sum)
		}
	})
}

// While most instances do not answer a dial, requests still go to those that do.
func TestMostAreSilent(t *testing.T) {
	t.Parallel()
	silence(t, "abc", "ab", func(n *network) {
		if took := n.posts(100); took > 2*dialLimit+time.Second {
			n.Errorf("100 requests took %v", took)
		}
	})
}

// When none answers, it may be the caller's own network: each request tries them all, and works as
// soon as one answers.
func TestAllAreSilent(t *testing.T) {
	t.Parallel()
	silence(t, "abc", "abc", func(n *network) {
		for range 2 {
			took, err := n.post(context.WithoutCancel(n.Ctx))
			testrig.WantErrText(n.T, err, "orders/", "dial tcp")
			if took < dialLimit || took > 3*dialLimit+time.Second {
				n.Errorf("failed after %v", took)
			}
		}
		n.mu.Lock()
		clear(n.silent)
		n.mu.Unlock()
		if took := n.posts(1); took > time.Second {
			n.Errorf("took %v", took)
		}
	})
}

// A caller with less time than a dial may take tells less of the instance: it counts as any failure.
func TestSilentForALittle(t *testing.T) {
	t.Parallel()
	silence(t, "a", "a", func(n *network) {
		for i := range 2 {
			call, err := n.p.Pick(n.Ctx)
			if err != nil {
				n.Fatalf("set aside after %d failures: %v", i, err)
			}
			call.Done(context.Canceled)
			_, err = n.post(n.Within(time.Second))
			testrig.WantErr(n.T, err, context.DeadlineExceeded)
		}
		if _, err := n.p.Pick(n.Ctx); !errors.Is(err, discovery.ErrNoInstance) {
			n.Errorf("not set aside after two failures: %v", err)
		}
	}, discovery.WithPanicThreshold(1))
}

// The limit is for dialers that the caller has not given.
func TestDialLimit(t *testing.T) {
	t.Parallel()
	silence(t, "a", "", func(n *network) {
		own := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("mine") }
		for base, want := range map[*http.Transport]time.Duration{
			nil:                dialLimit,
			{}:                 dialLimit,
			{DialContext: own}: 0,
		} {
			var opts []Option
			if base != nil {
				opts = append(opts, WithTransport(base))
			}
			rt, err := New(n.p, opts...)
			n.Check(err)
			if rt.limit != want {
				n.Errorf("%v: the limit is %v, want %v", base, rt.limit, want)
			}
		}
	})
}

// The error of a dial says what it was, and counts as silence only for those that took their time.
func TestDialErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		context.DeadlineExceeded:                                true,
		fmt.Errorf("dialer: %w", context.DeadlineExceeded):      true,
		&net.OpError{Op: "dial", Err: context.DeadlineExceeded}: true,
		&net.DNSError{IsTimeout: true}:                          true,
		errors.New("refused"):                                   false,
		&net.OpError{Op: "dial", Err: errors.New("refused")}:    false,
		&net.OpError{Op: "dial", Err: context.Canceled}:         false,
	} {
		if got := timedOut(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
