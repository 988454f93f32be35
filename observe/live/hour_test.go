package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// step is how often the recorder scrapes.
const step = 15 * time.Second

// recorder scrapes processes in virtual time, and writes what it has seen as input for promtool.
type recorder struct {
	*testing.T

	scrapes   int
	instances []*instance
	series    map[string][]string
}

// instance is a process of the job shop.
type instance struct {
	name     string
	registry *prometheus.Registry
	metrics  *promdocent.Collector
	dead     bool
}

func (r *recorder) process(name string) *instance {
	r.Helper()
	i := &instance{name: name, registry: prometheus.NewPedanticRegistry(), metrics: promdocent.New(promdocent.WithLockName(observe.Path))}
	i.registry.MustRegister(i.metrics)
	r.instances = append(r.instances, i)
	return i
}

// scrape notes the values of all series. A series that is not there any more is stale.
func (r *recorder) scrape() {
	r.Helper()
	seen := map[string]bool{}
	for _, i := range r.instances {
		if i.dead {
			continue
		}
		families, err := i.registry.Gather()
		if err != nil {
			r.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				for name, value := range samples(i.name, f.GetName(), m) {
					seen[name] = true
					r.series[name] = append(r.caught(name), fmt.Sprint(value))
				}
			}
		}
	}
	for name, values := range r.series {
		if !seen[name] && values[len(values)-1] != "stale" && values[len(values)-1] != "_" {
			r.series[name] = append(values, "stale")
		}
	}
	r.scrapes++
}

// caught are the values of a series, with gaps up to this scrape.
func (r *recorder) caught(name string) []string {
	values := r.series[name]
	for len(values) < r.scrapes {
		values = append(values, "_")
	}
	return values
}

// samples are what a metric is in Prometheus.
func samples(instance, name string, m *dto.Metric) map[string]float64 {
	labels := []string{`job="shop"`, fmt.Sprintf("instance=%q", instance)}
	for _, l := range m.GetLabel() {
		labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	with := func(suffix string, more ...string) string {
		return name + suffix + "{" + strings.Join(slices.Concat(labels, more), ", ") + "}"
	}
	h := m.GetHistogram()
	if h == nil {
		return map[string]float64{with(""): m.GetCounter().GetValue() + m.GetGauge().GetValue()}
	}
	all := map[string]float64{
		with("_count"): float64(h.GetSampleCount()), with("_sum"): h.GetSampleSum(), with("_bucket", `le="+Inf"`): float64(h.GetSampleCount()),
	}
	for _, b := range h.GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			all[with("_bucket", fmt.Sprintf("le=\"%v\"", b.GetUpperBound()))] = float64(b.GetCumulativeCount())
		}
	}
	return all
}

// expected says which alerts fire at a time, with the names of locks. An empty list is no alert.
type expected struct {
	at     time.Duration
	alerts []string // labels of a sample of count by (alertname, docent_lock_name)
}

// judge has promtool find out which alerts fire.
func (r *recorder) judge(t *testing.T, want []expected) {
	t.Helper()
	rules, err := filepath.Abs("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "rule_files: [%s]\nevaluation_interval: 15s\ntests:\n  - interval: %v\n    input_series:\n", rules, step)
	for name, values := range r.series {
		fmt.Fprintf(&text, "      - {series: '%s', values: '%s'}\n", name, strings.Join(values, " "))
	}
	text.WriteString("    promql_expr_test:\n")
	for _, w := range want {
		fmt.Fprintf(&text, "      - expr: count by (alertname, docent_lock_name) (ALERTS{alertstate=\"firing\"})\n        eval_time: %v\n        exp_samples: [", w.at)
		for i, labels := range w.alerts {
			if i > 0 {
				text.WriteString(", ")
			}
			fmt.Fprintf(&text, "{labels: '{%s}', value: 1}", labels)
		}
		text.WriteString("]\n")
	}
	file := filepath.Join(t.TempDir(), "recorded.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v (it is in Debian's package prometheus)\n%.3000s", err, out)
	}
}

// every names a time for each minute up to last.
func every(last time.Duration, alerts ...string) (all []expected) {
	for at := time.Minute; at <= last; at += time.Minute {
		all = append(all, expected{at, alerts})
	}
	return all
}

// shop is a service of several processes on one server, in a bubble.
type shop struct {
	*recorder

	srv     *zktest.Server
	timeout time.Duration
	ctx     context.Context // of the load
	wg      sync.WaitGroup
	clients map[string]*client.Client
}

// record runs a shop in virtual time for as long as told, with what happens in it, and returns what
// was recorded. happens is called before each scrape, with the time since the start.
func record(t *testing.T, timeout, long time.Duration, happens func(*shop, time.Duration)) *recorder {
	t.Helper()
	r := &recorder{T: t, series: map[string][]string{}}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(500*time.Millisecond), zktest.WithSessionTimeouts(timeout, timeout),
			zktest.WithLatency(time.Millisecond, 3*time.Millisecond), zktest.WithLogSize(0))
		ctx, cancel := context.WithCancel(t.Context())
		s := &shop{recorder: r, srv: srv, timeout: timeout, ctx: ctx, clients: map[string]*client.Client{}}
		for at := time.Duration(0); at <= long; at += step {
			happens(s, at)
			r.scrape()
			time.Sleep(step)
		}
		cancel()
		s.wg.Wait()
		for _, c := range s.clients {
			_ = c.CloseContext(context.WithoutCancel(ctx))
		}
		synctest.Wait()
	})
	return r
}

// opens starts a process that connects.
func (s *shop) opens(name string) (*instance, *client.Client) {
	s.Helper()
	i := s.process(name)
	c, err := client.Connect(s.ctx, "zk", client.WithSessionTimeout(s.timeout), client.WithObserver(i.metrics.Observer()),
		client.WithDialer(s.srv.Client(name).DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.Fatal(err)
	}
	s.clients[name] = c
	return i, c
}

// works has a process take locks as a healthy one does: a mutex that all want, permits, and a lock of
// its own that it holds for ten minutes.
func (s *shop) works(name string, c *client.Client) {
	s.Helper()
	next := rand.New(rand.NewPCG(7, uint64(len(name)+int(name[len(name)-1]))))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(next.Int64N(int64(most-least)))
	}
	m, err := recipes.NewInterProcessMutex(c, "/locks/orders")
	if err != nil {
		s.Fatal(err)
	}
	sem, err := recipes.NewInterProcessSemaphoreV2(c, "/locks/encoders", 2)
	if err != nil {
		s.Fatal(err)
	}
	long, err := recipes.NewInterProcessMutex(c, "/locks/batch-"+name)
	if err != nil {
		s.Fatal(err)
	}
	for _, work := range []func() error{
		func() error { return s.holds(between(10*time.Millisecond, 2*time.Second), m.Acquire) },
		func() error {
			lease, err := sem.Acquire(s.ctx, 1)
			if err == nil {
				time.Sleep(between(time.Second, 20*time.Second))
				err = lease.Release(context.WithoutCancel(s.ctx))
			}
			return err
		},
		func() error { return s.holds(10*time.Minute, long.Acquire) },
	} {
		s.wg.Go(func() {
			for s.ctx.Err() == nil {
				if err := work(); err != nil && s.ctx.Err() == nil {
					s.Errorf("%s: %v", name, err)
					return
				}
				time.Sleep(3 * time.Second)
			}
		})
	}
}

// holds takes a lock and holds it, unless the load is over.
func (s *shop) holds(long time.Duration, acquire func(context.Context) (*recipes.Hold, error)) error {
	h, err := acquire(s.ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(long):
	case <-s.ctx.Done():
	}
	return h.Release(context.WithoutCancel(s.ctx))
}

// campaigns has a process stand for election.
func (s *shop) campaigns(c *client.Client, path string) {
	s.Helper()
	e, err := recipes.NewLeaderLatch(c, path)
	if err != nil {
		s.Fatal(err)
	}
	s.wg.Go(func() {
		_ = e.Run(s.ctx, func(ctx context.Context, _ *recipes.Term) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
}

// follows has a process follow a tree, and be member of a group.
func (s *shop) follows(name string, c *client.Client) {
	s.Helper()
	tree, err := cache.NewTree(c, "/config", cache.Text)
	if err != nil {
		s.Fatal(err)
	}
	member, err := nodes.NewGroupMember(c, "/workers", name, nil)
	if err != nil {
		s.Fatal(err)
	}
	if err := tree.Start(s.ctx); err != nil {
		s.Fatal(err)
	}
	if err := member.Start(s.ctx); err != nil {
		s.Fatal(err)
	}
	s.wg.Go(func() {
		<-s.ctx.Done()
		tree.Close()
		_ = member.Close()
	})
}

// opensHealthy starts three processes that do everything.
func (s *shop) opensHealthy() {
	for _, name := range []string{"shop1", "shop2", "shop3"} {
		_, c := s.opens(name)
		s.works(name, c)
		s.campaigns(c, "/leaders/scheduler")
		s.follows(name, c)
	}
}

// No alert fires in an hour of a healthy load, whatever the session timeout. The hour is one of the
// clients themselves, in virtual time: its series are recorded, and promtool judges them.
func TestAHealthyHour(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{4 * time.Second, 30 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			r := record(t, timeout, time.Hour, func(s *shop, at time.Duration) {
				switch {
				case at == 0:
					s.opensHealthy()
				case at%time.Minute == 0: // somebody changes the configuration, and connections are cut
					path := "/config"
					if at > time.Minute {
						path = fmt.Sprintf("/config/%v", at)
					}
					if err := s.srv.Create(path, nil); err != nil {
						s.Error(err)
					}
					if at%(10*time.Minute) == 0 {
						s.srv.Client("shop1").Cut()
					}
				}
			})
			if len(r.series) < 500 || r.scrapes != 241 {
				t.Fatalf("%d series, %d scrapes", len(r.series), r.scrapes)
			}
			r.judge(t, every(time.Hour))
		})
	}
}

// A holder hangs, and two wait without a deadline: one alert tells it within six minutes, and names
// the lock. Nothing else fires, though other locks are as busy as ever.
func TestAHolderThatHangs(t *testing.T) {
	t.Parallel()
	const hangs = 10 * time.Minute
	r := record(t, 15*time.Second, 20*time.Minute, func(s *shop, at time.Duration) {
		switch at {
		case 0:
			s.opensHealthy()
		case hangs:
			for _, name := range []string{"shop1", "shop2", "shop3"} {
				m, err := recipes.NewInterProcessMutex(s.clients[name], "/locks/stuck")
				if err != nil {
					s.Fatal(err)
				}
				s.wg.Go(func() { _ = s.holds(time.Hour, m.Acquire) })
			}
		}
	})
	stuck := `alertname="DocentLockStuck", docent_lock_name="/locks/stuck"`
	r.judge(t, append(every(hangs+5*time.Minute-step), expected{hangs + 6*time.Minute, []string{stuck}}, expected{20 * time.Minute, []string{stuck}}))
}

// All candidates of an election are killed: one alert tells it, though nothing is exported any more.
func TestAllCandidatesKilled(t *testing.T) {
	t.Parallel()
	const killed = 10 * time.Minute
	r := record(t, 15*time.Second, 20*time.Minute, func(s *shop, at time.Duration) {
		switch at {
		case 0:
			s.opensHealthy()
		case step:
			for _, name := range []string{"cron1", "cron2"} {
				_, c := s.opens(name)
				s.campaigns(c, "/leaders/nightly")
			}
		case killed:
			for _, i := range s.instances {
				if strings.HasPrefix(i.name, "cron") {
					i.dead = true
					s.srv.Client(i.name).Partition()
				}
			}
		}
	})
	gone := `alertname="DocentNoLeader", docent_lock_name="/leaders/nightly"`
	r.judge(t, append(every(killed+2*time.Minute-step), expected{killed + 3*time.Minute, []string{gone}}, expected{20 * time.Minute, []string{gone}}))
}

// Alerts of connections and heartbeats follow the session timeout. Connections that are cut fire neither,
// nor does a server that is gone for a seventh of a longer timeout. A process that is cut off for longer
// fires DocentDisconnected. One failed heartbeat in three fires DocentHeartbeatsFail, and loses no lease.
func TestOutagesBySessionTimeout(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{4 * time.Second, 30 * time.Second, 60 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			t.Parallel()
			const short, long, mended, flaky, well = 5 * time.Minute, 12 * time.Minute, 16 * time.Minute, 30 * time.Minute, 40 * time.Minute
			var dropped *zktest.Rule
			r := record(t, timeout, 50*time.Minute, func(s *shop, at time.Duration) {
				switch at {
				case 0:
					s.opens("idle")
					_, holder := s.opens("holder")
					m, err := recipes.NewInterProcessMutex(holder, "/locks/batch")
					if err != nil {
						s.Fatal(err)
					}
					s.wg.Go(func() { _ = s.holds(2*time.Hour, m.Acquire) })
				case short:
					s.srv.Refuse()
					s.srv.CutAll()
					s.wg.Go(func() {
						time.Sleep((timeout - 4*time.Second) / 6) // at 4 s a pause between two dials is too much of the lease
						s.srv.Accept()
					})
				case long:
					s.srv.Client("idle").Partition()
				case mended:
					s.srv.Client("idle").Heal()
				case flaky:
					var beats atomic.Int64
					third := func(zktest.Request) bool { return beats.Add(1)%3 == 0 }
					dropped = s.srv.Fail(zktest.Match{Client: "holder", Op: zktest.OpMulti, Where: third, Times: zktest.Always}, zktest.CodeOperationTimeout)
				case well:
					dropped.Remove()
				}
			})
			gone, lost, failing := `alertname="DocentDisconnected"`, `alertname="DocentSessionsLost"`, `alertname="DocentHeartbeatsFail"`
			bound := max(timeout, 15*time.Second)
			want := every(long + bound - step)
			// The client notices a silent network after a part of its session timeout.
			for at := long + 2*bound + step; at <= mended; at += step {
				want = append(want, expected{at, []string{gone, lost}})
			}
			want = append(want, expected{flaky - step, nil}, expected{well, []string{failing}}, expected{50 * time.Minute, nil})
			r.judge(t, want)
		})
	}
}
