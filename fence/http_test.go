package fence_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/fence"
)

// shelf serves writes to resources behind a gate: the path names the resource.
func shelf(missing fence.Missing, next http.Handler) (*fence.Gate, http.Handler) {
	gate := &fence.Gate{}
	return gate, fence.Handler(gate, func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }, missing, next)
}

// direct is a RoundTripper that calls a handler without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// send sends a request through a Transport and returns what CheckResponse says.
func send(ctx context.Context, t *testing.T, h http.Handler, method, path string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://shelf"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &fence.Transport{Base: direct{h}}}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if len(req.Header) != 0 {
		t.Errorf("the transport changed the caller's request: %v", req.Header)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all), fence.CheckResponse(resp)
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	var handed []int64
	_, h := shelf(fence.RefuseMissing, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token, _ := fence.Token(r.Context())
		handed = append(handed, token)
	}))
	put := func(token int64, path string) (int, string, error) {
		return send(fence.WithToken(t.Context(), token), t, h, http.MethodPut, path)
	}
	for _, token := range []int64{5, 5, 6} {
		if status, body, err := put(token, "/a"); status != http.StatusOK || err != nil {
			t.Errorf("token %d: %d %s, %v", token, status, body, err)
		}
	}
	status, body, err := put(5, "/a")
	wantStale(t, err, fence.StaleError{Resource: "a", Token: 5, Newest: 6})
	if status != http.StatusPreconditionFailed || !strings.Contains(body, "stale fencing token 5") {
		t.Errorf("answered %d %s", status, body)
	}
	// A name that would not do in a header.
	odd := "b\n%c/ü"
	if _, _, err := put(9, "/"+"b%0A%25c%2F%C3%BC"); err != nil {
		t.Error(err)
	}
	_, _, err = put(8, "/"+"b%0A%25c%2F%C3%BC")
	wantStale(t, err, fence.StaleError{Resource: odd, Token: 8, Newest: 9})
	if want := []int64{5, 5, 6, 9}; len(handed) != len(want) || handed[3] != 9 {
		t.Errorf("the handler saw tokens %v, want %v", handed, want)
	}
}

func TestHTTPMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		missing fence.Missing
		method  string
		status  int
	}{
		{fence.RefuseMissing, http.MethodGet, 428},
		{fence.RefuseMissing, http.MethodPost, 428},
		{fence.AdmitReads, http.MethodGet, 200},
		{fence.AdmitReads, http.MethodHead, 200},
		{fence.AdmitReads, http.MethodPost, 428},
		{fence.AdmitReads, http.MethodDelete, 428},
		{fence.AdmitMissing, http.MethodPost, 200},
		{fence.Missing(99), http.MethodGet, 428},
	} {
		_, h := shelf(c.missing, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		status, _, err := send(t.Context(), t, h, c.method, "/a")
		if status != c.status {
			t.Errorf("%d, %s: answered %d, want %d", c.missing, c.method, status, c.status)
		}
		if c.status == 428 {
			wantErr(t, err, fence.ErrNoToken)
		} else if err != nil {
			t.Errorf("%d, %s: %v", c.missing, c.method, err)
		}
	}
}

func TestHTTPMalformed(t *testing.T) {
	t.Parallel()
	_, h := shelf(fence.AdmitMissing, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("it passed")
	}))
	for _, values := range [][]string{{""}, {"x"}, {"0"}, {"-1"}, {"1.5"}, {"5", "6"}, {"99999999999999999999"}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/a", http.NoBody)
		r.Header[fence.TokenHeader] = values
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q: answered %d", values, w.Code)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", http.NoBody) // no name
	r.Header.Set(fence.TokenHeader, "5")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("without a name: answered %d", w.Code)
	}
}

// A request under way is told of a newer one, which waits for it, and gives up
// with its own context.
func TestHTTPOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := &trace{}
		end := make(chan struct{})
		_, h := shelf(fence.RefuseMissing, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if token, _ := fence.Token(r.Context()); token != 5 {
				tr.add("newer")
				return
			}
			<-r.Context().Done()
			wantErr(t, context.Cause(r.Context()), fence.ErrStale)
			<-end
			tr.add("older")
		}))
		answered := make(chan int, 1)
		at := func(ctx context.Context, token int64) int {
			status, _, _ := send(fence.WithToken(ctx, token), t, h, http.MethodPut, "/a")
			return status
		}
		go func() { answered <- at(t.Context(), 5) }()
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if got := at(gone, 6); got != http.StatusServiceUnavailable {
			t.Errorf("answered %d", got)
		}
		done := make(chan int, 1)
		go func() { done <- at(t.Context(), 7) }()
		synctest.Wait()
		tr.want(t)
		close(end)
		if a, b := <-answered, <-done; a != http.StatusOK || b != http.StatusOK {
			t.Errorf("answered %d and %d", a, b)
		}
		tr.want(t, "older", "newer")
	})
}

// Answers that have nothing to do with a gate are no refusals.
func TestCheckResponse(t *testing.T) {
	t.Parallel()
	for _, resp := range []*http.Response{
		{StatusCode: 200},
		{StatusCode: 500},
		{StatusCode: 412}, // of If-Match
		{StatusCode: 200, Header: http.Header{fence.NewestHeader: {"7"}}},
		{StatusCode: 412, Header: http.Header{fence.NewestHeader: {"x"}}},
	} {
		if err := fence.CheckResponse(resp); err != nil {
			t.Errorf("%d %v: %v", resp.StatusCode, resp.Header, err)
		}
	}
}
