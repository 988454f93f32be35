package discoveryhttp_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/discoveryhttp"
	"github.com/docent-go/docent/zktest"
)

// world is a service with instances that are servers of the test.
type world struct {
	testing.TB
	ctx context.Context
	srv *zktest.Server
	d   *discovery.ServiceDiscovery
	reg map[string]*discovery.Registration
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, srv: testrig.Server(t), reg: map[string]*discovery.Registration{}}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	var err error
	w.d, err = discovery.New(testrig.Connect(w.ctx, t, "zk:2181", w.srv.Client("a").DialContext), "/services", discovery.CuratorMap())
	testrig.Check(t, err)
	return w
}

// register registers a server under an ID.
func (w *world) register(id string, s *httptest.Server) {
	w.Helper()
	u, err := url.Parse(s.URL)
	testrig.Check(w, err)
	port, err := strconv.Atoi(u.Port())
	testrig.Check(w, err)
	i := discovery.ServiceInstance{Service: "orders", ID: id, Address: u.Hostname(), Port: port}
	if u.Scheme == "https" {
		i.Port, i.TLSPort = 1, port // nobody listens on the first
	}
	w.reg[id], err = w.d.Register(w.ctx, i)
	testrig.Check(w, err)
}

// says is a server that answers its own name, and registers it.
func (w *world) says(id string) *httptest.Server {
	w.Helper()
	return w.serves(id, func(rw http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = fmt.Fprintf(rw, "%s%s", id, got)
		}
		if err != nil && r.Context().Err() == nil {
			w.Error(err)
		}
	})
}

func (w *world) serves(id string, handler http.HandlerFunc) *httptest.Server {
	w.Helper()
	s := httptest.NewServer(handler)
	w.Cleanup(s.Close)
	w.register(id, s)
	return s
}

// provider picks the instances in the order of their IDs.
func (w *world) provider(opts ...discovery.ProviderOption) *discovery.ServiceProvider {
	w.Helper()
	p, err := w.d.Provider("orders", append([]discovery.ProviderOption{discovery.WithPanicThreshold(1)}, opts...)...)
	testrig.Check(w, err)
	testrig.Check(w, p.Start(w.ctx))
	w.Cleanup(p.Close)
	return p
}

func (w *world) client(p *discovery.ServiceProvider, opts ...discoveryhttp.Option) *http.Client {
	w.Helper()
	rt, err := discoveryhttp.New(p, opts...)
	testrig.Check(w, err)
	w.Cleanup(rt.CloseIdleConnections)
	return &http.Client{Transport: rt}
}

// send sends a request, and returns the body of the answer.
func (w *world) send(c *http.Client, method, body string, header ...string) (string, error) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, "http://orders/x", strings.NewReader(body))
	testrig.Check(w, err)
	for _, name := range header {
		req.Header.Set(name, "1")
	}
	return read(c.Do(req))
}

func read(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(got), err
}

// want sends n requests, all of which must succeed.
func (w *world) want(c *http.Client, n int, method, body string, header ...string) string {
	w.Helper()
	var all []string
	for range n {
		got, err := w.send(c, method, body, header...)
		testrig.Check(w, err)
		all = append(all, got)
	}
	return strings.Join(all, "")
}

// dials counts dials by address.
type dials struct {
	mu sync.Mutex
	n  map[string]int
}

func (d *dials) option() discoveryhttp.Option {
	d.n = map[string]int{}
	base := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		d.mu.Lock()
		d.n[address]++
		d.mu.Unlock()
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	return discoveryhttp.WithTransport(base)
}

func (d *dials) to(s *httptest.Server) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n[s.Listener.Addr().String()]
}

// Requests go to the instances in turn, over one connection each, with the name of the service as
// their Host. The request of the caller stays as it is.
func TestTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hosts := make(chan string, 100)
	answer := func(rw http.ResponseWriter, r *http.Request) {
		hosts <- r.Host
		_, _ = io.WriteString(rw, "x")
	}
	a, b := w.serves("a", answer), w.serves("b", answer)
	var d dials
	c := w.client(w.provider(), d.option())
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://orders/x?y=z", nil)
	testrig.Check(t, err)
	before := fmt.Sprintf("%+v", req)
	for range 10 {
		resp, err := c.Transport.RoundTrip(req)
		_, err = read(resp, err)
		testrig.Check(t, err)
		if host := <-hosts; host != "orders" {
			t.Errorf("Host %q", host)
		}
	}
	if after := fmt.Sprintf("%+v", req); after != before {
		t.Errorf("the request was\n%s\nand is\n%s", before, after)
	}
	if d.to(a) != 1 || d.to(b) != 1 {
		t.Errorf("%d and %d dials, want one each", d.to(a), d.to(b))
	}
}

// A port without a process is noticed by the caller in nothing but time, also by one who posts.
// After two refusals nobody dials it.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dead := w.says("a")
	w.says("b")
	dead.Close()
	var d dials
	c := w.client(w.provider(), d.option())
	if got := w.want(c, 10, http.MethodPost, "!"); got != strings.Repeat("b!", 10) {
		t.Errorf("got %s", got)
	}
	if n := d.to(dead); n != 2 {
		t.Errorf("the dead instance was dialled %d times, want 2", n)
	}
}

// A request that was sent is sent again only if it may be repeated.
func TestResetBeforeAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		method, header string
		bare           bool // without GetBody
		again          bool
	}{
		"GET":                     {method: http.MethodGet, again: true},
		"PUT":                     {method: http.MethodPut, again: true},
		"DELETE":                  {method: http.MethodDelete, again: true},
		"POST":                    {method: http.MethodPost},
		"PATCH":                   {method: http.MethodPatch},
		"POST with a key":         {method: http.MethodPost, header: "Idempotency-Key", again: true},
		"PUT of a body read once": {method: http.MethodPut, bare: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var reset atomic.Int32
			breaks := func(rw http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err == nil {
					reset.Add(1)
				}
				conn, _, err := http.NewResponseController(rw).Hijack()
				if err == nil {
					_ = conn.Close()
				}
			}
			w.serves("a", breaks)
			w.says("b")
			c := w.client(w.provider())
			sent := 0
			for range 2 { // one of them goes to a first
				req, err := http.NewRequestWithContext(w.ctx, tt.method, "http://orders/x", strings.NewReader("!"))
				testrig.Check(t, err)
				if tt.header != "" {
					req.Header.Set(tt.header, "1")
				}
				if tt.bare {
					req.GetBody = nil
				}
				got, err := read(c.Do(req))
				switch {
				case err == nil && got == "b!":
					sent++
				case tt.again || err == nil:
					t.Errorf("got %q, %v", got, err)
				default:
					testrig.WantErrText(t, err, "orders/a at 127.0.0.1")
				}
			}
			want := 1
			if tt.again {
				want = 2
			}
			if sent != want || reset.Load() == 0 {
				t.Errorf("%d succeeded, want %d; %d met the reset", sent, want, reset.Load())
			}
		})
	}
}

// An instance that says that it cannot is as bad as one that says nothing. The caller gets its
// answer if nobody else has a better one.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		w := newWorld(t)
		var asked atomic.Int32
		w.serves("a", func(rw http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			http.Error(rw, "busy", code)
		})
		p := w.provider()
		c := w.client(p)
		got, err := w.send(c, http.MethodGet, "")
		if got != "busy\n" || err == nil {
			t.Errorf("got %q, %v, want the answer of the only instance", got, err)
		}
		w.says("b")
		_, err = p.Cache().Wait(w.ctx, w.srv.Zxid())
		testrig.Check(t, err)
		if got := w.want(c, 10, http.MethodGet, ""); got != strings.Repeat("b", 10) {
			t.Errorf("got %s", got)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("the instance was asked %d times, want 2", n)
		}
	}
}

// Other answers say that the instance works.
func TestOtherAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		w.serves(id, func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, id, http.StatusInternalServerError) })
	}
	c := w.client(w.provider())
	seen := map[string]int{}
	for range 10 {
		got, err := w.send(c, http.MethodGet, "")
		testrig.WantErrText(t, err, "500")
		seen[got]++
	}
	if seen["a\n"] != 5 || seen["b\n"] != 5 {
		t.Errorf("answers: %v, want 5 of each", seen)
	}
}

// An answer that breaks off is an error of its reader and a failure of its instance.
func TestBreaksOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	w.serves("a", func(rw http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		rw.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(rw, "five!")
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	w.says("b")
	c := w.client(w.provider())
	broken := 0
	for range 20 {
		if _, err := w.send(c, http.MethodGet, ""); err != nil {
			testrig.WantErr(t, err, io.ErrUnexpectedEOF)
			broken++
		}
	}
	if broken != 2 || asked.Load() != 2 {
		t.Errorf("%d answers were broken of %d, want 2: then the instance is set aside", broken, asked.Load())
	}
}

// A caller that gives up says nothing of the instance; a time that is over does.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		w := newWorld(t)
		began := make(chan struct{})
		w.serves("a", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case began <- struct{}{}:
			case <-w.ctx.Done():
			}
			<-r.Context().Done()
		})
		p := w.provider()
		c := w.client(p)
		for range 3 {
			ctx, cancel := context.WithCancel(w.ctx)
			if late {
				ctx, cancel = context.WithTimeout(w.ctx, 20*time.Millisecond)
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://orders/", nil)
			testrig.Check(t, err)
			go func() {
				select {
				case <-began:
				case <-w.ctx.Done():
				}
				if !late {
					cancel()
				}
			}()
			resp, err := c.Do(req)
			if err == nil {
				_ = resp.Body.Close()
				t.Error("an answer came")
			}
			cancel()
			if late && errors.Is(err, discovery.ErrNoInstance) {
				break
			}
			testrig.WantErr(t, err, ctx.Err())
		}
		_, err := p.Pick(w.ctx)
		if late {
			testrig.WantErr(t, err, discovery.ErrNoInstance)
		} else {
			testrig.Check(t, err)
		}
	}
}

// A call is under way until the body of its answer is closed.
func TestCallEndsWithItsBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		w.serves(id, func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(rw, strings.Repeat(id, 1<<16))
		})
	}
	c := w.client(w.provider(discovery.WithStrategy(discovery.LeastLoaded)))
	open := func() (byte, io.Closer) {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://orders/", nil)
		testrig.Check(t, err)
		resp, err := c.Do(req)
		testrig.Check(t, err)
		first := make([]byte, 1)
		_, err = io.ReadFull(resp.Body, first)
		testrig.Check(t, err)
		return first[0], resp.Body
	}
	for range 10 {
		held, body := open()
		for range 5 {
			other, second := open()
			_ = second.Close()
			if other == held {
				t.Fatal("a request went to the instance that is busy")
			}
		}
		_ = body.Close()
	}
	// Now none is busy, and both get requests.
	seen := map[byte]bool{}
	for range 100 {
		id, body := open()
		_ = body.Close()
		seen[id] = true
	}
	if len(seen) != 2 {
		t.Errorf("only %v got requests", seen)
	}
}

// When an instance has gone, its idle connections are closed with the next request.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := make(chan struct{}, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "a") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	w.register("a", s)
	w.says("b")
	p := w.provider()
	c := w.client(p)
	w.want(c, 2, http.MethodGet, "")
	select {
	case <-closed:
		t.Fatal("the connection was closed while its instance stands")
	default:
	}
	testrig.Check(t, w.reg["a"].Close())
	_, err := p.Cache().Wait(w.ctx, w.srv.Zxid())
	testrig.Check(t, err)
	w.want(c, 1, http.MethodGet, "")
	select {
	case <-closed:
	case <-w.ctx.Done():
		t.Error("the connection stays open")
	}
}

// A process that ends takes no request with it that may be repeated.
func TestDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dies := w.says("a")
	w.says("b")
	c := w.client(w.provider())
	stop := make(chan struct{})
	var sent atomic.Int32
	half := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := w.send(c, http.MethodGet, ""); err != nil {
					t.Error(err)
					return
				}
				if sent.Add(1) == 100 {
					close(half)
				}
			}
		})
	}
	select {
	case <-half:
	case <-w.ctx.Done():
		t.Error("too few requests")
	}
	_ = dies.Listener.Close()
	dies.CloseClientConnections()
	w.want(c, 100, http.MethodGet, "")
	close(stop)
	group.Wait()
}

// WithTries counts the instances that a request was sent to.
func TestTries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	for _, id := range []string{"a", "b", "c", "d"} {
		w.serves(id, func(rw http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			http.Error(rw, "busy", http.StatusServiceUnavailable)
		})
	}
	for _, tries := range []int32{1, 2, 4} {
		asked.Store(0)
		if _, err := w.send(w.client(w.provider(), discoveryhttp.WithTries(int(tries))), http.MethodGet, ""); err == nil {
			t.Error("an answer came")
		}
		if n := asked.Load(); n != tries {
			t.Errorf("%d instances were asked, want %d", n, tries)
		}
	}
}

// A program in a crash loop has left more nodes than there are instances, so that nothing counts as
// set aside. No request fails as long as one instance works.
func TestCrashLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		w.says(id).Close()
	}
	w.says("g")
	var d dials
	c := w.client(w.provider(discovery.WithPanicThreshold(0.5)), d.option(), discoveryhttp.WithTries(1))
	if got := w.want(c, 100, http.MethodPost, ""); got != strings.Repeat("g", 100) {
		t.Errorf("got %s", got)
	}
	if len(d.n) != 7 {
		t.Errorf("dialled %v, want all 7 instances", d.n)
	}
}

// Most instances take a request and answer nothing. Once each has failed, a request that is safe to
// repeat goes on to the one that works.
func TestMostAnswerNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		w.serves(id, func(rw http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
				_ = conn.Close()
			}
		})
	}
	w.says("g")
	c := w.client(w.provider(discovery.WithPanicThreshold(0.5)), discoveryhttp.WithTries(2))
	for range 14 {
		_, _ = w.send(c, http.MethodGet, "") // each fails twice, some requests with it
	}
	if got := w.want(c, 100, http.MethodGet, ""); got != strings.Repeat("g", 100) {
		t.Errorf("got %s", got)
	}
}

// A request that reaches nobody ends when each instance was dialled once.
func TestNobodyReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		w.says(id).Close()
	}
	var d dials
	_, err := w.send(w.client(w.provider(), d.option()), http.MethodPost, "x")
	testrig.WantErrText(t, err, "connection refused")
	for address, n := range d.n {
		if n != 1 {
			t.Errorf("%s was dialled %d times, want once", address, n)
		}
	}
	if len(d.n) != 4 {
		t.Errorf("dialled %v, want all 4 instances", d.n)
	}
}

// The last failure of all instances is what the caller sees, and after that why there is none.
func TestAllDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says("a").Close()
	c := w.client(w.provider())
	for range 2 {
		_, err := w.send(c, http.MethodPost, "x")
		testrig.WantErrText(t, err, "orders/a at 127.0.0.1", "connection refused")
	}
	_, err := w.send(c, http.MethodPost, "x")
	testrig.WantErr(t, err, discovery.ErrNoInstance)
	testrig.WantErrText(t, err, "1 set aside")
}

// Requests for other hosts go nowhere, as that of a redirect.
func TestOtherHosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("a", func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://elsewhere/", http.StatusFound)
	})
	p := w.provider()
	_, err := w.send(w.client(p), http.MethodGet, "")
	testrig.WantErrText(t, err, "elsewhere", "orders alone", "WithHost")
	_, err = w.send(w.client(p, discoveryhttp.WithHost("Orders.example")), http.MethodGet, "")
	testrig.WantErrText(t, err, "the request is for orders", "orders.example alone")
	for text, opt := range map[string]discoveryhttp.Option{
		"must not be empty": discoveryhttp.WithHost(""),
		"0 tries":           discoveryhttp.WithTries(0),
		"DialContext alone": discoveryhttp.WithTransport(nil),
	} {
		_, err := discoveryhttp.New(p, opt)
		testrig.WantErrText(t, err, text)
	}
}

// A port in a URL is refused: the port is that of the instance. The port that the scheme has anyway
// may be written, and WithHost may name one.
func TestPortOfURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("a", func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.Host) })
	p := w.provider()
	send := func(c *http.Client, u string) (string, error) {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, u, nil)
		testrig.Check(t, err)
		return read(c.Do(req))
	}
	refused := []string{"for orders:8080,", "to orders alone", "at the port of each instance", "WithHost"}
	for _, tt := range []struct {
		host, url, want string
		refused         []string
	}{
		{"", "http://orders/", "orders", nil},
		{"", "http://orders:80/", "orders:80", nil},
		{"", "http://orders:/", "orders", nil},
		{"", "http://orders:8080/", "", refused},
		{"", "http://orders:443/", "", []string{"for orders:443,"}},
		{"", "https://orders:80/", "", []string{"for orders:80,"}},
		{"orders:8080", "http://orders:8080/", "orders:8080", nil},
		{"orders:8080", "http://ORDERS:8080/", "ORDERS:8080", nil},
		{"orders:8080", "http://orders/", "", []string{"for orders,", "to orders:8080 alone"}},
		{"orders:8080", "http://orders:8081/", "", []string{"for orders:8081,", "to orders:8080 alone"}},
		{"orders:80", "http://orders/", "orders", nil},
		{"::1", "http://[::1]/", "[::1]", nil},
		{"[::1]:8080", "http://[::1]:8080/", "[::1]:8080", nil},
		{"[::1]:8080", "http://[::1]/", "", []string{"for [::1],", "to [::1]:8080 alone"}},
	} {
		var opts []discoveryhttp.Option
		if tt.host != "" {
			opts = append(opts, discoveryhttp.WithHost(tt.host))
		}
		got, err := send(w.client(p, opts...), tt.url)
		if len(tt.refused) > 0 {
			testrig.WantErrText(t, err, tt.refused...)
		} else if err != nil || got != tt.want {
			t.Errorf("%s with the host %q: Host %q, error %v", tt.url, tt.host, got, err)
		}
	}
}

func TestNilProvider(t *testing.T) {
	t.Parallel()
	_, err := discoveryhttp.New(nil)
	testrig.WantErrText(t, err, "the provider is nil; make one with ServiceDiscovery.Provider")
}

// A proxy of the given transport is not used: its address would be dialled as the instance.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("a", func(rw http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(rw, r.RequestURI) })
	proxy := http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:3128"})
	c := w.client(w.provider(), discoveryhttp.WithTransport(&http.Transport{Proxy: proxy}))
	if got := w.want(c, 1, http.MethodGet, ""); got != "/x" {
		t.Errorf("the instance was asked for %s, as a proxy is", got)
	}
}

// certificate is one for a name, which signs itself.
func certificate(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testrig.Check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	testrig.Check(t, err)
	leaf, err := x509.ParseCertificate(der)
	testrig.Check(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// With https the certificate is for the name of the service, and the TLS port is the one that is
// dialled. HTTP/2 balances as HTTP/1.1 does.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t, "orders")
	for _, major := range []int{1, 2} {
		w := newWorld(t)
		for _, id := range []string{"a", "b"} {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_, _ = fmt.Fprintf(rw, "%s%s", id, body)
			}))
			s.EnableHTTP2 = major == 2
			s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			s.StartTLS()
			t.Cleanup(s.Close)
			w.register(id, s)
		}
		c := w.client(w.provider(), discoveryhttp.WithTransport(&http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true,
		}))
		seen := map[string]int{}
		for range 10 {
			req, err := http.NewRequestWithContext(w.ctx, http.MethodPut, "https://orders/x", bytes.NewReader([]byte("!")))
			testrig.Check(t, err)
			resp, err := c.Do(req)
			got, err := read(resp, err)
			testrig.Check(t, err)
			if resp.ProtoMajor != major {
				t.Errorf("%s, want HTTP/%d", resp.Proto, major)
			}
			seen[got]++
		}
		if seen["a!"] != 5 || seen["b!"] != 5 {
			t.Errorf("HTTP/%d: %v, want 5 of each", major, seen)
		}
	}
}
