package observe

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
)

// Measures gives clients the observers that keep the metrics of a [Sink].
type Measures struct {
	name    LockName
	locks   limit // of values of the label "docent.lock.name"
	cached  limit // of values of the label "docent.cache.name"
	kept    limit // of values of the label "docent.node.name"
	listed  limit // of values of the label "docent.service.name"
	servers limit // of values of the label "server.address"

	operations *series[operation, func(context.Context, float64)]
	retries    *series[string, func(context.Context, int64)]
	states     [client.Closed + 1]state
	lease      func(context.Context, float64)
	heartbeats *series[string, func(context.Context, float64)]
	failures   func(context.Context, int64)
	dials      *series[dial, func(context.Context, float64)]
	of         *series[kind, *lock]
	pending    func(context.Context, int64)
	removals   [client.RemovalGivenUp + 1]func(context.Context, int64)
	atomics    *series[atomicEnd, func(context.Context, float64)]
	tries      *series[atomicKind, func(context.Context, float64)]
	caches     *series[cacheKind, *cache]
	nodes      *series[nodeKind, *node]
	services   *series[string, *service]
	timeouts   timeouts
	apart      ages // of clients without a connection
}

type (
	operation struct{ op, errorType string }
	dial      struct{ server, errorType string }
	kind      struct{ recipe, mode, lock string }
	state     struct{ in, to func(context.Context, int64) }

	cacheKind  struct{ recipe, cache string }
	nodeKind   struct{ recipe, node string }
	atomicKind struct{ recipe, op string }
	atomicEnd  struct {
		atomicKind
		outcome string
	}
)

// lazy makes a series when its first value comes.
type lazy = func() func(context.Context, float64)

// lock has the series of the locks of one kind.
type lock struct {
	acquired [client.AcquireCanceled + 1]lazy // most outcomes never come
	ended    [client.HoldLostClosed + 1]lazy
	lost     [client.HoldLostClosed + 1]func(context.Context, int64)
	holds    func(context.Context, int64)
	waiters  func(context.Context, int64)
	position func(context.Context, float64)
	waiting  ages
	holding  ages
}

// cache has the series of the caches of one kind.
type cache struct {
	states                 [client.CacheEnded]func(context.Context, int64)
	nodes                  func(context.Context, int64)
	delay                  [client.CacheResync + 1]lazy
	resyncs, gaps, limited func(context.Context, int64)
	unsynced               ages
}

// node has the series of the registered nodes of one kind.
type node struct {
	states [client.NodeEnded]func(context.Context, int64)
	failed *series[string, func(context.Context, int64)]
}

// service has the series of the directories of one name.
type service struct{ offered, disabled, skipped func(context.Context, int64) }

// NewMeasures returns the measures that go to the sink, and makes the series that need no
// event: those are 0 from the beginning. name gives the values of the labels "docent.lock.name",
// "docent.cache.name", "docent.node.name" and "docent.service.name"; nil is [NoName]. After a hundred different names any other name is [Other].
func NewMeasures(sink Sink, name LockName) *Measures {
	if name == nil {
		name = NoName
	}
	metrics := map[string]Metric{}
	for _, m := range Metrics() {
		metrics[m.Name] = m
	}
	histogram := func(name string, values ...string) func(context.Context, float64) {
		return sink.Histogram(metrics[name], words(metrics[name], values)...)
	}
	sum := func(name string, values ...string) func(context.Context, int64) {
		return sink.Sum(metrics[name], words(metrics[name], values)...)
	}
	asked := func(name string, value func() float64, values ...string) {
		sink.Ask(metrics[name], value, words(metrics[name], values)...)
	}
	m := &Measures{
		name:     name,
		lease:    histogram(LeaseRemaining),
		failures: sum(HeartbeatFailures),
		pending:  sum(Pending),
	}
	asked(SessionTimeout, m.timeouts.shortest)
	asked(DisconnectedAge, m.apart.oldest)
	m.operations = newSeries(func(o operation) func(context.Context, float64) {
		return histogram(OperationDuration, "zookeeper", o.op, o.errorType)
	})
	m.retries = newSeries(func(op string) func(context.Context, int64) { return sum(Retries, op) })
	m.heartbeats = newSeries(func(errorType string) func(context.Context, float64) { return histogram(HeartbeatDuration, errorType) })
	m.dials = newSeries(func(d dial) func(context.Context, float64) { return histogram(DialDuration, d.server, d.errorType) })
	m.atomics = newSeries(func(a atomicEnd) func(context.Context, float64) {
		return histogram(AtomicDuration, a.recipe, a.op, a.outcome)
	})
	m.tries = newSeries(func(a atomicKind) func(context.Context, float64) { return histogram(AtomicTries, a.recipe, a.op) })
	for s := range m.states {
		m.states[s].to = sum(Transitions, client.State(s).String())
		if client.State(s) != client.Closed {
			m.states[s].in = sum(SessionState, client.State(s).String())
		}
	}
	for s := client.RemovalDone; s <= client.RemovalGivenUp; s++ {
		m.removals[s] = sum(Removals, s.String())
	}
	m.of = newSeries(func(k kind) *lock {
		l := &lock{
			holds:    sum(Holds, k.recipe, k.mode, k.lock),
			waiters:  sum(Waiters, k.recipe, k.mode, k.lock),
			position: histogram(QueuePosition, k.recipe, k.mode, k.lock),
		}
		asked(WaitAge, l.waiting.oldest, k.recipe, k.mode, k.lock)
		asked(HoldAge, l.holding.oldest, k.recipe, k.mode, k.lock)
		for o := range l.acquired {
			l.acquired[o] = sync.OnceValue(func() func(context.Context, float64) {
				return histogram(AcquireDuration, k.recipe, k.mode, k.lock, client.AcquireOutcome(o).String())
			})
		}
		for e := range l.ended {
			l.ended[e] = sync.OnceValue(func() func(context.Context, float64) {
				return histogram(HoldDuration, k.recipe, k.mode, k.lock, client.HoldEnd(e).String())
			})
			if client.HoldEnd(e).Lost() { // from 0 on, so that the first loss is an increase
				l.lost[e] = sum(Lost, k.recipe, k.mode, k.lock, client.HoldEnd(e).String())
			}
		}
		return l
	})
	m.caches = newSeries(func(k cacheKind) *cache {
		c := &cache{
			nodes:   sum(CacheNodes, k.recipe, k.cache),
			resyncs: sum(CacheResyncs, k.recipe, k.cache),
			gaps:    sum(CacheGaps, k.recipe, k.cache),
			limited: sum(CacheLimits, k.recipe, k.cache),
		}
		asked(CacheAge, c.unsynced.oldest, k.recipe, k.cache)
		for s := range c.states {
			c.states[s] = sum(Caches, k.recipe, k.cache, client.CacheState(s).String())
		}
		for cause := range c.delay {
			c.delay[cause] = sync.OnceValue(func() func(context.Context, float64) {
				return histogram(CacheDelay, k.recipe, k.cache, client.CacheCause(cause).String())
			})
		}
		return c
	})
	m.nodes = newSeries(func(k nodeKind) *node {
		n := &node{failed: newSeries(func(errorType string) func(context.Context, int64) {
			return sum(NodeFailures, k.recipe, k.node, errorType)
		})}
		for s := range n.states {
			n.states[s] = sum(Nodes, k.recipe, k.node, client.NodeState(s).String())
		}
		return n
	})
	m.services = newSeries(func(name string) *service {
		return &service{
			offered:  sum(ServiceInstances, name, "offered"),
			disabled: sum(ServiceInstances, name, "disabled"),
			skipped:  sum(ServiceInstances, name, "skipped"),
		}
	})
	return m
}

// words are values of labels without blanks: "given_up" for "given up". The names that the program
// gives stay as they are.
func words(m Metric, values []string) []string {
	all := slices.Clone(values)
	for i, v := range all {
		if !strings.HasPrefix(m.Labels[i], "docent.") || !strings.HasSuffix(m.Labels[i], ".name") {
			all[i] = strings.ReplaceAll(v, " ", "_")
		}
	}
	return all
}

// Observer returns the hooks for one client. Each client needs its own observer: an
// observer knows the state that its client is in. The hooks never block.
func (m *Measures) Observer() client.Observer {
	return client.Observer{
		Operation:   m.operation,
		Retry:       func(ctx context.Context, again client.RetryInfo) { m.retries.of(again.Op)(ctx, 1) },
		StateChange: m.stateChanges(),
		Heartbeat:   m.heartbeat,
		Dial:        m.dial,
		Removal:     m.removal,
		Lock:        m.lock,
		Atomic:      m.atomic,
		Cache:       m.cache,
		Node:        m.node,
		Service:     m.service,
	}
}

func (m *Measures) operation(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
	return ctx, func(r client.OperationResult) {
		m.operations.of(operation{r.Op, ErrorType(r.Err)})(ctx, r.Duration.Seconds())
	}
}

// stateChanges returns the hook for the changes of one client. They come in order, on one
// goroutine.
func (m *Measures) stateChanges() func(client.StateChange) {
	ctx := unspanned()
	var leave func(context.Context, int64)
	var timeout time.Duration
	var apart age
	return func(now client.StateChange) {
		switch {
		case now.State == client.Connected || now.State == client.Closed:
			apart.end()
		case apart.in == nil:
			m.apart.begin(&apart)
		}
		m.timeouts.moved(timeout, now.SessionTimeout)
		timeout = now.SessionTimeout
		if leave != nil {
			leave(ctx, -1)
		}
		leave = m.states[now.State].in
		if leave != nil {
			leave(ctx, 1)
		}
		m.states[now.State].to(ctx, 1)
	}
}

func (m *Measures) heartbeat(b client.HeartbeatInfo) {
	ctx := unspanned()
	m.heartbeats.of(ErrorType(b.Err))(ctx, b.Duration.Seconds())
	m.lease(ctx, max(0, b.Left.Seconds()/b.Full.Seconds()))
	if b.Err != nil {
		m.failures(ctx, 1)
	}
}

func (m *Measures) dial(d client.DialInfo) {
	m.dials.of(dial{m.servers.value(d.Server), ErrorType(d.Err)})(unspanned(), d.Duration.Seconds())
}

func (m *Measures) removal(r client.RemovalInfo) {
	ctx := unspanned()
	switch r.State {
	case client.RemovalOwed:
		m.pending(ctx, 1)
	case client.RemovalFailed:
	default:
		m.pending(ctx, -1)
		m.removals[r.State](ctx, 1)
	}
}

func (m *Measures) atomic(ctx context.Context, op client.AtomicInfo) (context.Context, func(client.AtomicResult)) {
	return ctx, func(r client.AtomicResult) {
		k := atomicKind{op.Recipe, op.Op}
		outcome := "done"
		switch {
		case r.Err != nil:
			outcome = "error"
		case !r.Succeeded:
			outcome = "unchanged"
		}
		m.atomics.of(atomicEnd{k, outcome})(ctx, r.Duration.Seconds())
		m.tries.of(k)(ctx, float64(r.OptimisticTries+r.PromotedTries))
	}
}

// cache hears of a cache that starts.
func (m *Measures) cache(info client.CacheInfo) func(client.CacheUpdate) {
	c := m.caches.of(cacheKind{info.Recipe, m.cached.value(m.named(client.LockInfo{Recipe: info.Recipe, Path: info.Path}))})
	ctx, nodes := unspanned(), 0
	var leave func(context.Context, int64)
	var unsynced age
	return func(now client.CacheUpdate) {
		switch {
		case now.State == client.CacheSynced || now.State == client.CacheEnded:
			unsynced.end()
		case unsynced.in == nil:
			c.unsynced.begin(&unsynced)
		}
		if leave != nil {
			leave(ctx, -1)
		}
		leave = nil
		c.resyncs(ctx, now.Resyncs)
		c.gaps(ctx, now.Gaps)
		c.limited(ctx, now.Limits)
		if now.Snapshots > 0 {
			c.delay[now.Cause]()(ctx, now.Delay.Seconds())
		}
		if now.State == client.CacheEnded {
			c.nodes(ctx, int64(-nodes))
			return
		}
		c.nodes(ctx, int64(now.Nodes-nodes))
		leave, nodes = c.states[now.State], now.Nodes
		leave(ctx, 1)
	}
}

// node hears of a registered node that starts.
func (m *Measures) node(info client.NodeInfo) func(client.NodeUpdate) {
	n := m.nodes.of(nodeKind{info.Recipe, m.kept.value(m.named(client.LockInfo{Recipe: info.Recipe, Path: info.Path}))})
	ctx := unspanned()
	var leave func(context.Context, int64)
	return func(now client.NodeUpdate) {
		if leave != nil {
			leave(ctx, -1)
		}
		leave = nil
		if now.State == client.NodeEnded {
			return
		}
		if now.Err != nil {
			n.failed.of(ErrorType(now.Err))(ctx, 1)
		}
		leave = n.states[now.State]
		leave(ctx, 1)
	}
}

// service hears of a directory that starts.
func (m *Measures) service(info client.ServiceInfo) func(client.ServiceUpdate) {
	s := m.services.of(m.listed.value(m.named(client.LockInfo{Recipe: "ServiceCache", Path: info.Path})))
	ctx := unspanned()
	var was client.ServiceUpdate
	return func(now client.ServiceUpdate) {
		if now.Ended {
			now = client.ServiceUpdate{}
		}
		s.offered(ctx, int64(now.Offered-was.Offered))
		s.disabled(ctx, int64(now.Disabled-was.Disabled))
		s.skipped(ctx, int64(now.Skipped-was.Skipped))
		was = now
	}
}

// named is the name of a lock, of a cache, of a registered node or of a directory.
func (m *Measures) named(info client.LockInfo) string {
	return strings.ToValidUTF8(m.name(info), "\ufffd")
}

// lock hears of an acquire.
func (m *Measures) lock(ctx context.Context, info client.LockInfo) (context.Context, client.LockHooks) {
	l := m.of.of(kind{info.Recipe, info.Mode, m.locks.value(m.named(info))})
	l.waiters(ctx, 1)
	a := &acquire{lock: l, ctx: ctx}
	l.waiting.begin(&a.since)
	return ctx, client.LockHooks{Queued: a.queued, Acquired: a.acquired, Held: a.held, Ended: a.ended}
}

// acquire is one acquire, and the hold that comes of it.
type acquire struct {
	*lock

	ctx    context.Context //nolint:containedctx // the span that an exemplar of the acquire points at
	placed bool            // it has had its first place
	since  age             // of the wait, and then of the hold
}

func (a *acquire) queued(p client.QueuePlace) {
	if !a.placed {
		a.placed = true
		a.position(a.ctx, float64(p.Ahead))
	}
}

func (a *acquire) acquired(r client.AcquireResult) {
	a.since.end()
	a.waiters(a.ctx, -1)
	a.lock.acquired[r.Outcome]()(a.ctx, r.Duration.Seconds())
}

func (a *acquire) held(ctx context.Context, _ client.HoldInfo) context.Context {
	a.ctx = ctx // of the hold from now on
	a.holds(ctx, 1)
	a.holding.begin(&a.since)
	return ctx
}

func (a *acquire) ended(r client.HoldResult) {
	a.since.end()
	a.holds(a.ctx, -1)
	a.lock.ended[r.End]()(a.ctx, r.Duration.Seconds())
	if r.End.Lost() {
		a.lost[r.End](a.ctx, 1)
	}
}

// unspanned is the context of what no caller asked for.
func unspanned() context.Context {
	return context.Background() //nolint:forbidigo // these hooks are given no context
}
