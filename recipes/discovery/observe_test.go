package discovery_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/discovery"
)

// told keeps what an observer hears of directories.
type told struct {
	mu  sync.Mutex
	all []string
}

func (l *told) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
}

func (l *told) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// An observer hears how many instances there are: at once, at each change of that, and at the
// end. It hears nothing else.
func TestDirectoryIsObserved(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		var services, caches told
		c := r.Connect("observed", client.WithObserver(client.Observer{
			Service: func(info client.ServiceInfo) func(client.ServiceUpdate) {
				services.add(info.Service + " " + info.Path)
				return func(u client.ServiceUpdate) {
					services.add(fmt.Sprintf("%d %d %d %v", u.Offered, u.Disabled, u.Skipped, u.Ended))
				}
			},
			Cache: func(info client.CacheInfo) func(client.CacheUpdate) {
				caches.add(info.Recipe + " " + info.Path)
				return nil
			},
		}))
		want := func(text ...string) {
			r.Helper()
			synctest.Wait()
			if got := services.take(); !slices.Equal(got, text) {
				r.Errorf("the observer was told %q, want %q", got, text)
			}
		}
		r.set("bad", "{}")
		s, err := r.services(c, discovery.Curator()).Cache("orders")
		r.Check(err)
		r.Check(s.Start(r.Within(time.Minute)))
		want("orders "+base+"/orders", "0 0 1 false")
		if got := caches.take(); !slices.Equal(got, []string{"ServiceCache " + base + "/orders"}) {
			r.Errorf("of its cache the observer was told %q", got)
		}
		g := r.register(at("10.0.0.7", 80))
		r.want(s, "a=10.0.0.7:80 bad skipped")
		want("1 0 1 false")
		r.Check(g.Update(r.Within(time.Minute), at("10.0.0.8", 80))) // as many as before
		r.want(s, "a=10.0.0.8:80 bad skipped")
		want()
		r.Check(g.Disable(r.Within(time.Minute)))
		r.want(s, "a disabled bad skipped")
		want("0 1 1 false")
		r.Srv.Client("observed").Cut() // stale is what the cache tells
		time.Sleep(time.Minute)
		want()
		r.Check(g.Close())
		r.want(s, "bad skipped")
		want("0 0 1 false")
		s.Close()
		want("0 0 1 true")
		r.Check(r.Srv.Delete(base + "/orders/bad"))
		r.wantNothingLeft()
	})
}

// A hook that wants no news is left alone.
func TestDirectoryIsNotObserved(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		c := r.Connect("observed", client.WithObserver(client.Observer{Service: func(client.ServiceInfo) func(client.ServiceUpdate) { return nil }}))
		s, err := r.services(c, discovery.Curator()).Cache("orders")
		r.Check(err)
		r.Check(s.Start(r.Within(time.Minute)))
		s.Close()
		r.wantNothingLeft()
	})
}
