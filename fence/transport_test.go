package fence_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/fence"
)

// host is a server that writes down the requests that it gets, and redirects
// requests to /redirect.
type host struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // "PUT /path token resource"
	next string   // what a redirect leads to
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, strings.Join([]string{
			r.Method, r.URL.Path,
			strings.Join(r.Header.Values(fence.TokenHeader), "+"), strings.Join(r.Header.Values(fence.ResourceHeader), "+"),
		}, " "))
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, h.next, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// ownTransport is one of the test alone: a server of httptest that closes breaks what is on
// its way on http.DefaultTransport, also to other servers.
func ownTransport(t *testing.T) *http.Transport {
	t.Helper()
	own := &http.Transport{}
	t.Cleanup(own.CloseIdleConnections)
	return own
}

func (h *host) want(t *testing.T, requests ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got, want := strings.Join(h.got, "; "), strings.Join(requests, "; "); got != want {
		t.Errorf("the server got %q, want %q", got, want)
	}
	h.got = nil
}

func put(ctx context.Context, t *testing.T, c *http.Client, url string, headers ...string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}

// A token goes to the resource that it is for, and nowhere else.
func TestTransportSendsWhereItIsMeant(t *testing.T) {
	t.Parallel()
	stock, orders := newHost(t), newHost(t)
	c := &http.Client{Transport: &fence.Transport{Base: ownTransport(t), Resource: func(r *http.Request) string {
		switch "http://" + r.URL.Host {
		case stock.URL:
			return "the stock"
		case orders.URL:
			return "orders"
		}
		return ""
	}}}
	err := new(fence.Gate).Do(t.Context(), "the stock", 7, func(ctx context.Context) error {
		own := []string{fence.TokenHeader, "99", fence.ResourceHeader, "x"} // the caller's, which is not the hold's
		return errors.Join(
			put(ctx, t, c, stock.URL+"/a"), put(ctx, t, c, stock.URL+"/b", own...),
			put(ctx, t, c, orders.URL+"/a"), put(ctx, t, c, orders.URL+"/b", own...))
	})
	if err != nil {
		t.Error(err)
	}
	stock.want(t, "PUT /a 7 the%20stock", "PUT /b 7 the%20stock")
	orders.want(t, "PUT /a  ", "PUT /b  ")
	if err := put(t.Context(), t, c, stock.URL+"/c"); err != nil { // no hold
		t.Error(err)
	}
	stock.want(t, "PUT /c  ")
}

// A redirect to the same host keeps the token. A redirect to another host drops
// it, also for a redirect back, even if Resource does not look at the host.
func TestTransportRedirect(t *testing.T) {
	t.Parallel()
	a, b := newHost(t), newHost(t)
	c := &http.Client{Transport: &fence.Transport{Base: ownTransport(t), Resource: func(*http.Request) string { return "stock" }}}
	ctx := carrying(t.Context(), t, "stock", 7)
	a.next = "/b"
	if err := put(ctx, t, c, a.URL+"/redirect"); err != nil {
		t.Error(err)
	}
	a.want(t, "PUT /redirect 7 stock", "PUT /b 7 stock")
	a.next, b.next = b.URL+"/b", ""
	if err := put(ctx, t, c, a.URL+"/redirect"); err != nil {
		t.Error(err)
	}
	a.want(t, "PUT /redirect 7 stock")
	b.want(t, "PUT /b  ")
	a.next, b.next = b.URL+"/redirect", a.URL+"/back"
	if err := put(ctx, t, c, a.URL+"/redirect"); err != nil {
		t.Error(err)
	}
	a.want(t, "PUT /redirect 7 stock", "PUT /back  ")
	b.want(t, "PUT /redirect  ")
}

// closed is a body that remembers that it was closed.
type closed struct {
	io.Reader
	was bool
}

func (c *closed) Close() error { c.was = true; return nil }

// A Transport that does not say where tokens go sends nothing.
func TestTransportNeedsResource(t *testing.T) {
	t.Parallel()
	a := newHost(t)
	body := &closed{Reader: strings.NewReader("x")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&fence.Transport{}).RoundTrip(req) //nolint:bodyclose // there is no response
	if err == nil || !strings.Contains(err.Error(), "Transport.Resource is nil") {
		t.Errorf("error %v", err)
	}
	if !body.was {
		t.Error("the body was left open")
	}
	a.want(t)
}
