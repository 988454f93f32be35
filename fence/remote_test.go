package fence_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/docent-go/docent/fence"
)

// remote is the resource "a" of a shelf that is asked without a network.
func remote(h http.Handler) fence.Remote {
	return fence.Remote{Client: &http.Client{Transport: &fence.Transport{Base: direct{h}, Resource: named}}, URL: "http://shelf/a"}
}

// The late write of an old holder arrives after the next holder has read, and
// before that one has written.
func TestRemoteLateWriteAfterRead(t *testing.T) {
	t.Parallel()
	var served []string
	_, h := shelf(fence.AdmitReads, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served = append(served, r.Method) }))
	first := newLock(t.Context())
	err := fence.Do(t.Context(), first, remote(h), "a", func(ctx context.Context) error {
		return fence.Do(t.Context(), first.again(t.Context(), 9), remote(h), "a", func(later context.Context) error {
			// The new holder reads by a way that sends no token, say a cache.
			if _, _, err := send(t.Context(), t, h, http.MethodGet, "/a"); err != nil {
				t.Error(err)
			}
			_, _, late := send(ctx, t, h, http.MethodPut, "/a")
			wantStale(t, late, fence.StaleError{Resource: "a", Token: 7, Newest: 9})
			_, _, err := send(later, t, h, http.MethodPut, "/a")
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
	if got := strings.Join(served, " "); got != "GET PUT" {
		t.Errorf("served %s", got)
	}
}

// What keeps the work from beginning.
func TestRemoteRefuses(t *testing.T) {
	t.Parallel()
	serve := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	gate, h := shelf(fence.RefuseMissing, serve)
	if err := gate.Check("a", 8); err != nil {
		t.Fatal(err)
	}
	_, fresh := shelf(fence.RefuseMissing, serve)
	_, reads := shelf(fence.AdmitReads, serve)
	silent := remote(reads)
	silent.Client.Transport = direct{reads}
	mute := remote(fresh)
	mute.Client.Transport = direct{fresh}
	elsewhere := remote(fence.Handler(&fence.Gate{}, func(*http.Request) string { return "b" }, fence.RefuseMissing, serve))
	broken := remote(fresh)
	broken.URL = ":"
	for _, c := range []struct {
		name     string
		at       fence.Remote
		resource string
		want     error
		says     string
	}{
		{"newer token seen", remote(h), "a", fence.ErrStale, "stale"},
		{"no token sent", mute, "a", fence.ErrNoToken, "wants one"},
		{"no token sent, and reads are admitted", silent, "a", fence.ErrNoToken, "wants one in Fencing-Token; send the request by a fence.Transport whose Resource names the resource, with the context of fence.Do"},
		{"no Handler", remote(serve), "a", nil, "200 OK without Fencing-Newest: 7"},
		{"other resource", elsewhere, "a", fence.ErrOtherResource, "another name"},
		{"wrong name", remote(fresh), "b", fence.ErrOtherResource, `raise the token of "b": fencing token for another resource: Transport.Resource says that http://shelf/a is "a"`},
		{"no name", remote(fresh), "", nil, "no name"},
		{"no client", fence.Remote{}, "a", nil, "Client is nil"},
		{"no address", broken, "a", nil, `raise the token of "a"`},
	} {
		err := c.at.Do(t.Context(), c.resource, 7, func(context.Context) error {
			t.Errorf("%s: it ran", c.name)
			return nil
		})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %v that says %q", c.name, err, c.want, c.says)
		}
	}
}

// A request that ends with the hold says so.
func TestRemoteLost(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	at := remote(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	at.Client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		l.hold.end(errLost)
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	wantErr(t, fence.Do(t.Context(), l, at, "a", func(context.Context) error { t.Error("it ran"); return nil }), errLost)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The raise does not reach the service, which might ignore the method and write. A
// HEAD request of the service's own does, and a marked PUT is no raise.
func TestRaiseIsNotServed(t *testing.T) {
	t.Parallel()
	var served []string
	gate, h := shelf(fence.AdmitMissing, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served = append(served, r.Method) }))
	want := func(methods string) {
		t.Helper()
		if got := strings.Join(served, " "); got != methods {
			t.Errorf("served %q, want %q", got, methods)
		}
	}
	err := remote(h).Do(t.Context(), "a", 7, func(ctx context.Context) error {
		want("")
		if newest := gate.Newest("a"); newest != 7 {
			t.Errorf("raised to %d", newest)
		}
		_, _, err := send(ctx, t, h, http.MethodHead, "/a")
		return err
	})
	if err != nil {
		t.Error(err)
	}
	want("HEAD")
	marked := func(method string, token string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, "/a", http.NoBody)
		r.Header.Set(fence.RaiseHeader, "1")
		if token != "" {
			r.Header.Set(fence.TokenHeader, token)
			r.Header.Set(fence.ResourceHeader, "a")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct {
		method, token string
		status        int
	}{
		{http.MethodHead, "8", http.StatusNoContent},
		{http.MethodHead, "7", http.StatusPreconditionFailed},
		{http.MethodHead, "", http.StatusPreconditionRequired},
		{http.MethodPut, "8", http.StatusOK},
	} {
		if got := marked(c.method, c.token); got != c.status {
			t.Errorf("%s with token %q: answered %d, want %d", c.method, c.token, got, c.status)
		}
	}
	want("HEAD PUT")
}

// Locks that were taken in one transaction have one token. A Remote with the URL of
// another resource must not take the raise there for its own.
func TestRemoteOfAnotherResource(t *testing.T) {
	t.Parallel()
	gate := new(fence.Gate)
	name := func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/") }
	srv := httptest.NewServer(fence.Handler(gate, name, fence.RefuseMissing, http.NotFoundHandler()))
	t.Cleanup(srv.Close)
	plain := &fence.Transport{Base: ownTransport(t), Resource: name}
	for _, transport := range []http.RoundTripper{plain, roundTrip(plain.RoundTrip)} { // the latter says no names
		atB := fence.Remote{Client: &http.Client{Transport: transport}, URL: srv.URL + "/B"}
		err := atB.Do(t.Context(), "B", 7, func(ctx context.Context) error {
			return atB.Do(ctx, "A", 7, func(context.Context) error {
				t.Error("the work for A runs with a token that only B has seen")
				return nil
			})
		})
		if !errors.Is(err, fence.ErrOtherResource) || !strings.Contains(err.Error(), "a URL of its own resource") {
			t.Error(err)
		}
	}
}
