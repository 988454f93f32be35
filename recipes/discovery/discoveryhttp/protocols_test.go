package discoveryhttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery/discoveryhttp"
)

// A connection that changes its protocol passes through a reverse proxy over the transport.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("a", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "Upgrade")
		rw.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		rw.WriteHeader(http.StatusSwitchingProtocols)
		conn, both, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			w.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // nobody needs it any more
		line, _ := both.ReadString('\n')
		_, _ = fmt.Fprintf(conn, "got %s", line)
	})
	p := w.provider()
	rt, err := discoveryhttp.New(p)
	testrig.Check(t, err)
	t.Cleanup(rt.CloseIdleConnections)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: rt, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "orders"})
	}})
	t.Cleanup(proxy.Close)
	c, err := new(net.Dialer).DialContext(w.ctx, "tcp", strings.TrimPrefix(proxy.URL, "http://"))
	testrig.Check(t, err)
	defer c.Close() //nolint:errcheck // nobody needs it any more
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	testrig.Check(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v", resp.Status)
	}
	_, _ = io.WriteString(c, "hello\n")
	if line, err := in.ReadString('\n'); line != "got hello\n" {
		t.Errorf("%q, error %v", line, err)
	}
}

// Trailers of requests and answers, and Expect: 100-continue, go through.
func TestTrailersAndContinue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("a", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Trailer", "Sum")
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("Sum", r.Trailer.Get("Check")+string(body))
		_, _ = io.WriteString(rw, "ok")
	})
	c := w.client(w.provider())
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://orders/x", io.MultiReader(strings.NewReader("body")))
	testrig.Check(t, err)
	req.Header.Set("Expect", "100-continue")
	req.Trailer = http.Header{"Check": {"7"}}
	resp, err := c.Do(req)
	testrig.Check(t, err)
	_, _ = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if got := resp.Trailer.Get("Sum"); got != "7body" {
		t.Errorf("trailer %q", got)
	}
	if resp.Request != req {
		t.Error("the answer has another request")
	}
}

// A transport whose HTTP/2 belongs to somebody else shares connections between instances: refused.
func TestSharedHTTP2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	base := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{
		"h2": func(string, *tls.Conn) http.RoundTripper { return nil },
	}}
	if _, err := discoveryhttp.New(w.provider(), discoveryhttp.WithTransport(base)); err == nil {
		t.Error("no error")
	}
	off := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	_, err := discoveryhttp.New(w.provider(), discoveryhttp.WithTransport(off))
	testrig.Check(t, err)
	used := &http.Transport{ForceAttemptHTTP2: true}
	used.CloseIdleConnections()
	_, _ = used.RoundTrip(&http.Request{})
	_, err = discoveryhttp.New(w.provider(), discoveryhttp.WithTransport(used))
	testrig.Check(t, err)
}

// The password of a URL is in no error.
func TestNoPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rt, err := discoveryhttp.New(w.provider())
	testrig.Check(t, err)
	for _, u := range []string{"ftp://me:secret@orders/x", "http://me:secret@other/x"} {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, u, nil)
		testrig.Check(t, err)
		_, err = rt.RoundTrip(req)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// closing counts how often a body is closed.
type closing struct {
	io.Reader
	n *int
}

func (c closing) Close() error { *c.n++; return nil }

// The body of a request that is not sent is closed.
func TestBodyIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.provider()
	rt, err := discoveryhttp.New(p)
	testrig.Check(t, err)
	ended, cancel := context.WithCancel(w.ctx)
	cancel()
	for name, ctx := range map[string]context.Context{"no instance": w.ctx, "ended": ended} {
		n := 0
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://orders/x", closing{strings.NewReader("x"), &n})
		testrig.Check(t, err)
		if _, err := rt.RoundTrip(req); err == nil || n != 1 {
			t.Errorf("%s: closed %d times, error %v", name, n, err)
		}
	}
	w.serves("a", func(http.ResponseWriter, *http.Request) {})
	_, err = p.Cache().Wait(w.ctx, w.srv.Zxid())
	testrig.Check(t, err)
	n := 0
	req, err := http.NewRequestWithContext(ended, http.MethodPut, "http://orders/x", closing{strings.NewReader("x"), &n})
	testrig.Check(t, err)
	if _, err := rt.RoundTrip(req); !errors.Is(err, context.Canceled) || n == 0 {
		t.Errorf("closed %d times, error %v", n, err)
	}
}
