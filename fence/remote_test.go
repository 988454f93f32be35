package fence_test

import (
	"context"
	"errors"
	"net/http"
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
	if got := strings.Join(served, " "); got != "HEAD HEAD GET PUT" {
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
		{"no token sent, and reads are admitted", silent, "a", nil, "must reach the service's Handler"},
		{"no Handler", remote(serve), "a", nil, "200 OK without Fencing-Newest: 7"},
		{"other resource", elsewhere, "a", fence.ErrOtherResource, "another name"},
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
