package discoveryhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/internal/choosing"
)

// Transport is an [http.RoundTripper] that sends each request to an instance of one service. Each
// instance has an [http.Transport] of its own, so that connections are used again.
//
// It is safe for concurrent use, and has no goroutine of its own. When an instance has gone, the
// next request closes the idle connections to it.
type Transport struct {
	provider *discovery.ServiceProvider
	host     string // that URLs name, in lower case
	port     string // that URLs name, "" if it is that of the scheme
	base     *http.Transport
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	limit    time.Duration // of a dial, 0 for none
	tries    int

	mu    sync.Mutex
	seen  *discovery.Snapshot // whose instances have the transports
	lines map[line]*http.Transport
}

// dialLimit is enough for two lost packets, which are sent again after 1 s and after 3 s.
const dialLimit = 5 * time.Second

// line is what a transport is for.
type line struct {
	scheme  string
	address string
}

// Option configures a [Transport].
type Option interface{ apply(t *Transport) error }

type option func(t *Transport) error

func (o option) apply(t *Transport) error { return o(t) }

// WithHost sets the host that URLs name, which is the name of the service by default. Requests for
// other hosts are refused: a redirect must not send the cookies of one service to another.
//
// The host may have a port, such as "orders:8080", for programs whose URLs have one. The transport
// never dials it, as each instance has a port of its own. It refuses URLs with any other port, but for
// the one that their scheme stands for.
func WithHost(host string) Option {
	return option(func(t *Transport) error {
		t.host, t.port = strings.ToLower(host), ""
		if name, port, err := net.SplitHostPort(t.host); err == nil {
			t.host, t.port = name, port
		}
		if t.host == "" {
			return errors.New("discoveryhttp: the host must not be empty")
		}
		return nil
	})
}

// WithTransport sets the transport of which each instance gets a copy: timeouts, TLS, limits. Its
// DialContext dials the instances. Its Proxy is not used. It must not have any other function that
// dials, nor a TLSNextProto, as of golang.org/x/net/http2. The default is a copy of [http.DefaultTransport].
//
// A DialContext that base has says itself how long a dial may take. Without one, and by default, it
// is 5 s.
func WithTransport(base *http.Transport) Option {
	return option(func(t *Transport) error {
		//nolint:staticcheck // those of old programs are looked for
		if base == nil || base.DialTLSContext != nil || base.DialTLS != nil || base.Dial != nil {
			return errors.New("discoveryhttp: WithTransport needs a transport that dials by DialContext alone")
		}
		t.base = base.Clone()
		t.limit = dialLimit
		if base.DialContext != nil {
			t.limit = 0
		}
		if len(t.base.TLSNextProto) > 0 { // a clone has none of net/http's own
			return errors.New("discoveryhttp: WithTransport needs a transport without TLSNextProto, whose connections all instances would share: set ForceAttemptHTTP2 or Protocols for HTTP/2")
		}
		return nil
	})
}

// WithTries sets how many times a request is sent at most. The default is 3; with 1 no request is
// sent again. An instance that cannot be dialled does not count, because nothing was sent to it. Each
// instance is tried once at most.
func WithTries(n int) Option {
	return option(func(t *Transport) error {
		if n < 1 {
			return fmt.Errorf("discoveryhttp: %d tries: a request needs at least one", n)
		}
		t.tries = n
		return nil
	})
}

// New returns a transport for the service of the provider. It does no I/O. The provider remains the
// caller's, who closes it after the last request.
func New(provider *discovery.ServiceProvider, opts ...Option) (*Transport, error) {
	if provider == nil {
		return nil, errors.New("discoveryhttp: the provider is nil; make one with ServiceDiscovery.Provider")
	}
	t := &Transport{provider: provider, host: strings.ToLower(provider.Cache().Service()), tries: 3, lines: map[line]*http.Transport{}}
	for _, opt := range opts {
		if opt == nil {
			continue
		}
		if err := opt.apply(t); err != nil {
			return nil, err
		}
	}
	if t.base == nil {
		base, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("discoveryhttp: http.DefaultTransport is no *http.Transport: give one by WithTransport")
		}
		t.base, t.limit = base.Clone(), dialLimit
	}
	t.base.Proxy = nil // it would be dialled instead of the instance
	if t.dial = t.base.DialContext; t.dial == nil {
		t.dial = new(net.Dialer).DialContext
	}
	return t, nil
}

// RoundTrip sends the request to an instance, and to another one if that fails and the request may
// be sent again; see the package. It changes nothing in the request.
//
// If no instance is left after a failure, it returns the failed answer, or its error. An error that
// matches [discovery.ErrNoInstance] says that the request was not sent.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.check(req.URL); err != nil {
		closeBody(req)
		return nil, err
	}
	ctx := req.Context()
	var tried []string
	var last attempt
	for sent := 0; ; {
		call, err := t.provider.Pick(ctx, tried...)
		if err != nil {
			if last.failed {
				return last.resp, last.err
			}
			closeBody(req)
			if len(tried) > 0 {
				err = fmt.Errorf("discoveryhttp: no instance of %s has a port for %s: %w", t.provider.Cache().Service(), req.URL.Scheme, err)
			}
			return nil, err
		}
		address := addressOf(call.Instance, req.URL.Scheme)
		if address == "" {
			tried = append(tried, call.Instance.Node)
			call.Done(context.Canceled) // it says nothing of how it works
			continue
		}
		out := req
		if last.failed {
			if out, err = again(req); err != nil {
				call.Done(context.Canceled)
				return last.resp, last.err
			}
			last.drop()
		}
		last = send(t.line(req.URL.Scheme, address), out, call)
		if !last.unsent() {
			sent++
		}
		if !last.failed || sent >= t.tries || ctx.Err() != nil || !last.repeatable(req) {
			return last.resp, last.err
		}
		tried = append(tried, call.Instance.Node)
	}
}

// CloseIdleConnections closes the connections that no request uses. The transport remains usable.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.lines {
		line.CloseIdleConnections()
	}
}

func (t *Transport) check(u *url.URL) error {
	switch {
	case u == nil:
		return errors.New("discoveryhttp: the request has no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("discoveryhttp: the URL %s has neither the scheme http nor https", u.Redacted())
	case strings.ToLower(u.Hostname()) != t.host || portFor(u.Scheme, u.Port()) != portFor(u.Scheme, t.port):
		own := t.host
		if t.port != "" {
			own = net.JoinHostPort(t.host, t.port)
		}
		return fmt.Errorf("discoveryhttp: the request is for %s, and this transport sends to %s alone, at the port of each instance (see WithHost)", u.Host, own)
	}
	return nil
}

// portFor is a port, or that of the scheme.
func portFor(scheme, port string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// line returns the transport to an address, and closes what leads to instances that have gone.
func (t *Transport) line(scheme, address string) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if newest := t.provider.Cache().Snapshot(); newest != t.seen {
		t.seen = newest
		t.prune(newest)
	}
	to := line{scheme, address}
	found := t.lines[to]
	if found == nil {
		found = t.base.Clone()
		found.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			within := ctx
			if t.limit > 0 {
				var cancel context.CancelFunc
				within, cancel = context.WithTimeout(ctx, t.limit)
				defer cancel()
			}
			conn, err := t.dial(within, network, address)
			if err != nil {
				return nil, &dialError{err, ctx.Err() == nil && timedOut(err)}
			}
			return conn, nil
		}
		t.lines[to] = found
	}
	return found
}

// prune ends the transports to addresses that no instance has. Connections with a request on them
// are closed when that has ended.
func (t *Transport) prune(newest *discovery.Snapshot) {
	stand := make(map[line]bool, 2*len(newest.Instances))
	for _, list := range [][]*discovery.ServiceInstance{newest.Instances, newest.Disabled} {
		for _, i := range list {
			for _, scheme := range []string{"http", "https"} {
				stand[line{scheme, addressOf(i, scheme)}] = true
			}
		}
	}
	for to, gone := range t.lines {
		if !stand[to] {
			delete(t.lines, to)
			gone.CloseIdleConnections()
		}
	}
}

// addressOf is where an instance speaks a scheme, or "".
func addressOf(i *discovery.ServiceInstance, scheme string) string {
	port := i.Port
	if scheme == "https" && i.TLSPort != 0 {
		port = i.TLSPort
	}
	if port == 0 {
		return ""
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(port))
}

// dialError is of a request that was not sent.
type dialError struct {
	err    error
	silent bool // nobody has answered, in a time that the caller has not set
}

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// Is reports whether target is [choosing.ErrSilent], and the instance was.
func (e *dialError) Is(target error) bool { return e.silent && target == choosing.ErrSilent }

// timedOut reports whether the error of a dial says that there was no answer in time.
func timedOut(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.As(err, &timed) && timed.Timeout()
}
