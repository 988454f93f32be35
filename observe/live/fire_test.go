package live_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// station is what one alert is about: servers, clients, and the metrics that Prometheus scrapes. Its
// locks, caches and nodes are at /ALERT.
type station struct {
	*testing.T

	alert, path string
	srv         *zktest.Server
	timeout     time.Duration
	metrics     *promdocent.Collector
	web         *httptest.Server
	ctx         context.Context
	wg          sync.WaitGroup

	mu   sync.Mutex
	down bool // the process is dead: nothing is exported
}

func newStation(ctx context.Context, t *testing.T, alert string, timeout time.Duration) *station {
	t.Helper()
	s := &station{
		T: t, alert: alert, path: "/" + alert, timeout: timeout, ctx: ctx,
		srv:     zktest.NewServer(t, zktest.WithTick(100*time.Millisecond), zktest.WithSessionTimeouts(timeout, timeout)),
		metrics: promdocent.New(promdocent.WithLockName(observe.Path)),
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s.metrics)
	export := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		if down {
			http.Error(w, "the process is dead", http.StatusServiceUnavailable)
			return
		}
		export.ServeHTTP(w, r)
	}))
	t.Cleanup(s.web.Close)
	return s
}

func (s *station) die(dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = dead
}

func (s *station) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", s.alert, err)
	}
}

// connect connects a client. It is closed with the test if not before.
func (s *station) connect(name string) *client.Client {
	s.Helper()
	c, err := client.Connect(s.ctx, "zk", client.WithSessionTimeout(s.timeout), client.WithObserver(s.metrics.Observer()),
		client.WithDialer(s.srv.Client(name).DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	s.must(err)
	s.Cleanup(func() { _ = c.CloseContext(context.Background()) }) //nolint:forbidigo // the test's context has ended
	return c
}

func (s *station) mutex(c *client.Client) *recipes.InterProcessMutex {
	s.Helper()
	m, err := recipes.NewInterProcessMutex(c, s.path)
	s.must(err)
	return m
}

// keeps has a client hold the station's lock until the context ends, again after each loss.
func (s *station) keeps(ctx context.Context, c *client.Client) {
	s.Helper()
	m := s.mutex(c)
	s.repeat(ctx, 0, func() {
		h, err := m.Acquire(ctx)
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-h.Context().Done():
		}
		_ = h.Release(s.ctx)
	})
}

// repeat works again and again until the context ends.
func (s *station) repeat(ctx context.Context, pause time.Duration, work func()) {
	s.wg.Go(func() {
		for ctx.Err() == nil {
			work()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	})
}

// acquired takes the station's lock.
func (s *station) acquired(c *client.Client) *recipes.Hold {
	s.Helper()
	h, err := s.mutex(c).Acquire(s.ctx)
	s.must(err)
	return h
}

// fails has the server refuse requests until the returned function is called.
func (s *station) fails(op zktest.Op, code zktest.Code) (mend func()) {
	return s.srv.Fail(zktest.Match{Op: op, PathPrefix: s.path, Times: zktest.Always}, code).Remove
}

// campaign has a client lead.
func (s *station) campaign(ctx context.Context, c *client.Client) {
	s.Helper()
	latch, err := recipes.NewLeaderLatch(c, s.path)
	s.must(err)
	s.repeat(ctx, 0, func() {
		_ = latch.Run(ctx, func(ctx context.Context, _ *recipes.Term) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
}

// troubles maps each alert to what sets it off: a healthy beginning, which returns the trouble, which
// returns what ends it. An alert of something that happens once ends by itself.
func troubles() map[string]func(*station) (trouble func() (mend func())) {
	itself := func() {}
	return map[string]func(*station) func() func(){
		"DocentLockLost": func(s *station) func() func() {
			h := s.acquired(s.connect("a"))
			return func() func() {
				s.must(s.srv.Delete(h.Path()))
				return itself
			}
		},
		"DocentLeaseNearlyLost": func(s *station) func() func() {
			s.acquired(s.connect("a"))
			return func() func() {
				s.srv.Partition()
				return s.srv.Heal
			}
		},
		"DocentHeartbeatsFail": func(s *station) func() func() {
			s.keeps(s.ctx, s.connect("a"))
			return func() func() {
				return s.srv.Fail(zktest.Match{Op: zktest.OpMulti, Prob: .8}, zktest.CodeOperationTimeout).Remove
			}
		},
		"DocentDisconnected": func(s *station) func() func() {
			s.connect("a")
			return func() func() {
				s.srv.Stop()
				return s.srv.Resume
			}
		},
		"DocentSessionsLost": func(s *station) func() func() {
			session, err := s.connect("a").Session(s.ctx)
			s.must(err)
			return func() func() {
				s.srv.ExpireSession(session.ID())
				return itself
			}
		},
		"DocentRemovalsPending": func(s *station) func() func() {
			h := s.acquired(s.connect("a"))
			return func() func() {
				mend := s.fails(zktest.OpDelete, zktest.CodeNoAuth)
				if h.Release(s.ctx) == nil {
					s.Errorf("%s: a release that the server refused has no error", s.alert)
				}
				return mend
			}
		},
		"DocentRemovalsGivenUp": func(s *station) func() func() {
			c := s.connect("a")
			return func() func() {
				ctx, cancel := context.WithTimeout(s.ctx, time.Second)
				defer cancel()
				s.srv.Ignore(zktest.Match{Op: zktest.OpCreate})
				if _, err := c.Create(ctx, s.path, nil, client.Protected()); err == nil { // the node may stand
					s.Errorf("%s: a create without an answer has no error", s.alert)
				}
				s.srv.Partition()
				if c.CloseContext(ctx) == nil {
					s.Errorf("%s: a client is closed within a silent network", s.alert)
				}
				return s.srv.Heal
			}
		},
		"DocentAcquiresFail": func(s *station) func() func() {
			m := s.mutex(s.connect("a"))
			s.repeat(s.ctx, 100*time.Millisecond, func() {
				if h, err := m.Acquire(s.ctx); err == nil {
					_ = h.Release(s.ctx)
				}
			})
			return func() func() { return s.fails(zktest.OpCreate, zktest.CodeNoAuth) }
		},
		"DocentWaitsLong": func(s *station) func() func() {
			holder, waiter := s.mutex(s.connect("a")), s.mutex(s.connect("b"))
			s.repeat(s.ctx, 100*time.Millisecond, func() {
				if h, err := waiter.Acquire(s.ctx); err == nil {
					_ = h.Release(s.ctx)
				}
			})
			return func() func() {
				ctx, cancel := context.WithCancel(s.ctx)
				s.repeat(ctx, 100*time.Millisecond, func() {
					h, err := holder.Acquire(ctx)
					if err != nil {
						return
					}
					select {
					case <-time.After(2 * time.Second):
					case <-ctx.Done():
					}
					_ = h.Release(s.ctx)
				})
				return cancel
			}
		},
		"DocentLockStuck": func(s *station) func() func() {
			a, b := s.connect("a"), s.connect("b")
			s.must(s.acquired(a).Release(s.ctx))
			return func() func() {
				ctx, cancel := context.WithCancel(s.ctx)
				hangs := s.acquired(a)
				s.keeps(ctx, b)
				s.keeps(ctx, b)
				return func() {
					cancel()
					s.must(hangs.Release(s.ctx))
				}
			}
		},
		"DocentNoLeader": func(s *station) func() func() {
			ctx, cancel := context.WithCancel(s.ctx)
			a := s.connect("a")
			s.campaign(ctx, a)
			return func() func() {
				s.die(true)
				cancel()
				return func() {
					s.campaign(s.ctx, a)
					s.die(false)
				}
			}
		},
		"DocentOperationsFail": func(s *station) func() func() {
			c := s.connect("a")
			s.repeat(s.ctx, 50*time.Millisecond, func() {
				ctx, cancel := context.WithTimeout(s.ctx, 200*time.Millisecond)
				defer cancel()
				_, _, _ = c.Exists(ctx, s.path)
			})
			return func() func() { return s.fails(zktest.OpExists, zktest.CodeThrottledOp) }
		},
		"DocentCacheStale": func(s *station) func() func() {
			s.must(s.srv.Create(s.path, nil))
			tree, err := cache.NewTree(s.connect("a"), s.path, cache.Text)
			s.must(err)
			s.must(tree.Start(s.ctx))
			s.Cleanup(tree.Close)
			return func() func() {
				s.srv.Stop()
				return s.srv.Resume
			}
		},
		"DocentNodeMissing": func(s *station) func() func() {
			n, err := nodes.NewPersistentNode(s.connect("a"), nodes.Ephemeral, s.path, nil)
			s.must(err)
			s.must(n.Start(s.ctx))
			s.must(n.Wait(s.ctx))
			s.Cleanup(func() { _ = n.CloseContext(context.Background()) }) //nolint:forbidigo // the test's context has ended
			return func() func() {
				mend := s.fails(zktest.OpCreate, zktest.CodeNoAuth)
				s.must(s.srv.Delete(s.path))
				return mend
			}
		},
	}
}

// fired are the names of stations whose own alert is in the answer to a query for ALERTS.
func (p *prom) fired(expr string) map[string]bool {
	p.Helper()
	names := map[string]bool{}
	for _, s := range p.query(expr) {
		name := s.Metric["alertname"]
		if s.Metric["instance"] == name || s.Metric["docent_lock_name"] == "/"+name {
			names[name] = true
		}
	}
	return names
}

// Each alert fires on a Prometheus when there is a cause, and ends when the cause does. None fires
// before, and none of a process that goes on working beside all that.
func TestAlertsFireAndEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	all, targets := troubles(), map[string]string{}
	if names := slices.Sorted(maps.Keys(alerts(t))); !slices.Equal(names, slices.Sorted(maps.Keys(all))) {
		t.Fatalf("the alerts are %v, and there are troubles for %v", names, slices.Sorted(maps.Keys(all)))
	}
	const well = "well"
	// Where the alert does not need the session's end, a busy machine shall not bring it about.
	short := map[string]time.Duration{
		"DocentLeaseNearlyLost": 6 * time.Second, "DocentHeartbeatsFail": 6 * time.Second, "DocentDisconnected": 6 * time.Second, "DocentCacheStale": 4 * time.Second,
	}
	stations := map[string]*station{well: newStation(ctx, t, well, 30*time.Second)}
	for name := range all {
		stations[name] = newStation(ctx, t, name, cmp.Or(short[name], 30*time.Second))
	}
	t.Cleanup(func() {
		cancel()
		for _, s := range stations {
			s.wg.Wait()
		}
	})
	for name, s := range stations {
		targets[name] = s.web.Listener.Addr().String()
	}
	stations[well].works()
	begin := map[string]func() func(){}
	for name, prepare := range all {
		begin[name] = prepare(stations[name])
	}
	p := startPrometheus(t, targets, 2*interval, hurriedRules(t))
	const patience = 2 * time.Minute
	p.awaitFor(patience, "a scrape of each process", func() bool {
		up := p.query(`count_over_time(up[1m]) > 4`)
		return len(up) == len(stations)
	})
	const now, ever = `ALERTS{alertstate="firing"}`, `max_over_time(ALERTS{alertstate="firing"}[1h])`
	if early := p.fired(ever); len(early) > 0 {
		t.Errorf("before there is a cause %v fire", early)
	}
	var mend []func()
	for _, start := range begin {
		mend = append(mend, start())
	}
	quiet := map[string]bool{}
	defer func() {
		if t.Failed() {
			t.Logf("not yet: %v", slices.Sorted(maps.Keys(quiet)))
		}
	}()
	p.awaitFor(patience, "every alert", func() bool {
		quiet = map[string]bool{}
		fired := p.fired(ever)
		for name := range all {
			if !fired[name] {
				quiet[name] = true
			}
		}
		return len(quiet) == 0
	})
	for _, m := range mend {
		m()
	}
	p.awaitFor(patience, "the end of every alert", func() bool {
		quiet = p.fired(now)
		return len(quiet) == 0
	})
	if wrong := p.query(`max_over_time(ALERTS{alertstate="firing", instance="well"}[1h]) or max_over_time(ALERTS{alertstate="firing", docent_lock_name="/well"}[1h])`); len(wrong) != 0 {
		t.Errorf("alerts of a healthy process: %v", wrong)
	}
}

// works is what a healthy process does.
func (s *station) works() {
	s.Helper()
	for _, name := range []string{"a", "b"} {
		c := s.connect(name)
		m := s.mutex(c)
		s.repeat(s.ctx, 20*time.Millisecond, func() {
			h, err := m.Acquire(s.ctx)
			if err == nil {
				err = h.Release(s.ctx)
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				s.Errorf("%s: %v", s.alert, err)
			}
		})
	}
}
