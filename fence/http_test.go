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

// named is the resource of a request to the shelf: the path names it.
func named(r *http.Request) string {
	if r.URL.Host != "" && r.URL.Host != "shelf" { // on the holder's side
		return ""
	}
	return strings.TrimPrefix(r.URL.Path, "/")
}

// shelf serves writes to resources behind a gate.
func shelf(missing fence.Missing, next http.Handler) (*fence.Gate, http.Handler) {
	gate := &fence.Gate{}
	return gate, fence.Handler(gate, named, missing, next)
}

// direct is a RoundTripper that calls a handler without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// carrying returns a context with the token of a hold. A Checker ends such a
// context when its Do returns, and a request that is under way goes on.
func carrying(ctx context.Context, t *testing.T, resource string, token int64) (carries context.Context) {
	t.Helper()
	err := new(fence.Gate).Do(ctx, resource, token, func(ctx context.Context) error {
		carries = context.WithoutCancel(ctx) //nolint:fatcontext // it is what is asked for
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return carries
}

// send sends a request through a Transport and returns what CheckResponse says.
func send(ctx context.Context, t *testing.T, h http.Handler, method, path string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://shelf"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &fence.Transport{Base: direct{h}, Resource: named}}
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
		token, _ := fence.Token(r.Context(), named(r))
		handed = append(handed, token)
	}))
	put := func(token int64, path, resource string) (int, string, error) {
		return send(carrying(t.Context(), t, resource, token), t, h, http.MethodPut, path)
	}
	for _, token := range []int64{5, 5, 6} {
		if status, body, err := put(token, "/a", "a"); status != http.StatusOK || err != nil {
			t.Errorf("token %d: %d %s, %v", token, status, body, err)
		}
	}
	status, body, err := put(5, "/a", "a")
	wantStale(t, err, fence.StaleError{Resource: "a", Token: 5, Newest: 6})
	if status != http.StatusPreconditionFailed || !strings.Contains(body, "stale fencing token 5") {
		t.Errorf("answered %d %s", status, body)
	}
	// A name that would not do in a header.
	odd := "b\n%c/ü"
	if _, _, err := put(9, "/"+"b%0A%25c%2F%C3%BC", odd); err != nil {
		t.Error(err)
	}
	_, _, err = put(8, "/"+"b%0A%25c%2F%C3%BC", odd)
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
		r.Header.Set(fence.ResourceHeader, "a")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || w.Header().Get(fence.RefusedHeader) != "" {
			t.Errorf("%q: answered %d %v", values, w.Code, w.Header())
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

// The token of one lock raises nothing at the resource of another.
func TestHTTPOtherResource(t *testing.T) {
	t.Parallel()
	gate, h := shelf(fence.AdmitMissing, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("it passed")
	}))
	for _, names := range [][]string{nil, {""}, {"b"}, {"A"}, {"a", "b"}, {"a", "a"}, {"%zz"}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/a", http.NoBody)
		r.Header.Set(fence.TokenHeader, "5")
		if names != nil {
			r.Header[fence.ResourceHeader] = names
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		resp := w.Result()
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: answered %d", names, resp.StatusCode)
		}
		wantErr(t, fence.CheckResponse(resp), fence.ErrOtherResource)
	}
	if newest := gate.Newest("a"); newest != 0 {
		t.Errorf("the gate has seen %d", newest)
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
			if token, _ := fence.Token(r.Context(), "a"); token != 5 {
				tr.add("newer")
				return
			}
			<-r.Context().Done()
			wantErr(t, context.Cause(r.Context()), fence.ErrStale)
			<-end
			tr.add("older")
		}))
		answered := make(chan int, 1)
		at := func(ctx context.Context) int {
			status, _, _ := send(ctx, t, h, http.MethodPut, "/a")
			return status
		}
		go func() { answered <- at(carrying(t.Context(), t, "a", 5)) }()
		synctest.Wait()
		gone, cancel := context.WithCancel(carrying(t.Context(), t, "a", 6))
		cancel()
		if got := at(gone); got != http.StatusServiceUnavailable {
			t.Errorf("answered %d", got)
		}
		done := make(chan int, 1)
		go func() { done <- at(carrying(t.Context(), t, "a", 7)) }()
		synctest.Wait()
		tr.want(t)
		close(end)
		if a, b := <-answered, <-done; a != http.StatusOK || b != http.StatusOK {
			t.Errorf("answered %d and %d", a, b)
		}
		tr.want(t, "older", "newer")
	})
}

// A Handler with a Database raises the token before the request is served. One
// that cannot be raised is not served, and its client learns nothing of why.
func TestHTTPDatabase(t *testing.T) {
	t.Parallel()
	tr := &trace{}
	s, db := openStore(t, tr, 0)
	h := fence.Handler(db, named, fence.RefuseMissing, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.add("served")
		if err := db.Tx(r.Context(), "a", write(nil)); !fence.Refuse(w, err) && err != nil {
			t.Error(err)
		}
	}))
	put := func(token int64) (int, string, error) {
		return send(carrying(t.Context(), t, "a", token), t, h, http.MethodPut, "/a")
	}
	if status, body, err := put(7); status != http.StatusOK || err != nil {
		t.Errorf("answered %d %s, %v", status, body, err)
	}
	_, _, err := put(6)
	wantStale(t, err, fence.StaleError{Resource: "a", Token: 6, Newest: 7})
	s.raiseErr = errBody
	if status, body, err := put(8); status != http.StatusServiceUnavailable || err != nil || strings.Contains(body, errBody.Error()) {
		t.Errorf("answered %d %s, %v", status, body, err)
	}
	tr.want(t, "raise", "served", "begin", "check", "write", "commit", "raise", "raise")
}
