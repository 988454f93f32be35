package discoveryhttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/discovery/discoveryhttp"
)

var errSource = errors.New("the source of the body broke")

// broken is a body that breaks off.
type broken struct{ *strings.Reader }

func (b broken) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, errSource
}

func (broken) Close() error { return nil }

// A request that cannot be sent is its caller's fault: no instance is blamed for it.
func TestCallersFault(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*http.Request){
		"header":  func(req *http.Request) { req.Header.Set("X", "a\nb") },
		"method":  func(req *http.Request) { req.Method = "P U T" },
		"trailer": func(req *http.Request) { req.Trailer = http.Header{"X Y": nil} },
		"body":    func(req *http.Request) { req.Body, req.ContentLength = broken{strings.NewReader("x")}, -1 },
		"short":   func(req *http.Request) { req.Body, req.ContentLength = io.NopCloser(strings.NewReader("x")), 7 },
		"long":    func(req *http.Request) { req.Body, req.ContentLength = io.NopCloser(strings.NewReader("xyz")), 2 },
		"replay": func(req *http.Request) {
			req.GetBody = func() (io.ReadCloser, error) { return broken{strings.NewReader("x")}, nil }
			req.Body, _ = req.GetBody()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.serves("a", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
			w.serves("b", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
			p := w.provider(discovery.WithDownInstancePolicy(discovery.DownInstancePolicy{Errors: 1, Aside: 1e12, MaxAside: 1e12}))
			rt, err := discoveryhttp.New(p)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(rt.CloseIdleConnections)
			req, err := http.NewRequestWithContext(w.ctx, http.MethodPut, "http://orders/x", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			spoil(req)
			resp, err := rt.RoundTrip(req)
			if err == nil { // the instance answers what it got of the body
				_ = resp.Body.Close()
			}
			if whole := name == "header" || name == "method" || name == "trailer"; whole && err == nil {
				t.Fatal("the request was sent")
			}
			tried := map[string]bool{}
			for range 4 {
				call, err := p.Pick(w.ctx)
				if err != nil {
					t.Fatal(err)
				}
				tried[call.Instance.ID] = true
				call.Done(nil)
			}
			if len(tried) != 2 {
				t.Errorf("only %v are picked", tried)
			}
		})
	}
}

// endless is a body that never ends, and fails once it is closed.
type endless struct{ closed chan struct{} }

func (e endless) Read(p []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, errSource
	default:
		return len(p), nil
	}
}

func (e endless) Close() error { close(e.closed); return nil }

// An instance that dies while it gets a body is blamed, although the body cannot be read afterwards.
func TestDiesWhileItGetsTheBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serves("a", func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
		if conn, _, err := http.NewResponseController(rw).Hijack(); err == nil {
			_ = conn.Close()
		}
	})
	p := w.provider(discovery.WithDownInstancePolicy(discovery.DownInstancePolicy{Errors: 1, Aside: 1e12, MaxAside: 1e12}))
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPut, "http://orders/x", endless{make(chan struct{})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(w.client(p).Do(req)); err == nil {
		t.Fatal("the request was answered")
	}
	if call, err := p.Pick(w.ctx); !errors.Is(err, discovery.ErrNoInstance) {
		t.Errorf("%v, error %v", call, err)
	}
}
