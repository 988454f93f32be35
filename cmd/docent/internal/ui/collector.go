package ui

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// inner is what package client does for the library's own packages.
var inner = inside.Of[client.Client, client.Session, client.Op]()

const (
	leastBatch = 16
	mostBatch  = 512       // parts of one request
	batchBytes = 256 << 10 // of the answers to one request
	pulse      = time.Second
	lookEvery  = 100 * time.Millisecond
	overdue    = 2 * time.Second // an answer that takes longer is said to be late
	openLimit  = 4 * time.Second
	linger     = 5 * time.Second // the session outlasts the last page by so much
	tryAgain   = time.Second
)

// collector keeps a model up to date while somebody looks. It has a session only then.
type collector struct {
	dial  func(context.Context) (*client.Client, error)
	limit *limiter

	mu      sync.Mutex // guards the rest
	m       *model
	lookers int
	stop    context.CancelFunc // ends the goroutine, nil without one
	leave   *time.Timer        // calls idle when nobody has looked for a while
	ended   chan struct{}      // closed when the goroutine has ended
	closed  bool
	c       *client.Client // nil without a session
	failure error          // why there is no client or no feed
	failed  time.Time      // since when
	fresh   bool           // somebody looks again, and nothing was read since
	sent    time.Time      // of a request without an answer, zero if there is none
	heard   time.Time      // when the newest request was sent that has an answer
	shallow bool           // the servers do not read several nodes by one request
	batch   int
	next    time.Time     // the locks are not looked at before
	shown   int           // the version that was told of
	count   int64         // requests
	news    chan struct{} // closed when there is something new to show
}

func newCollector(dir string, l limits, dial func(context.Context) (*client.Client, error)) *collector {
	return &collector{
		dial: dial, limit: newLimiter(time.Now()), m: newModel(dir, l),
		batch: 64, news: make(chan struct{}),
	}
}

// look begins to look. Whoever looks calls the result when it ends.
func (k *collector) look() (done func(), ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, false
	}
	k.lookers++
	if k.leave != nil {
		k.leave.Stop()
		k.leave = nil
	}
	if k.stop == nil {
		k.begin()
	}
	return sync.OnceFunc(k.unlook), true
}

// begin starts the goroutine, behind the end of the last one.
func (k *collector) begin() {
	ctx, cancel := context.WithCancel(context.Background()) // for as long as somebody looks, which is no call
	before, ended := k.ended, make(chan struct{})
	k.stop, k.ended = cancel, ended
	k.fresh, k.failed = true, time.Now()
	go func() { // ends with ctx, which idle and close cancel
		defer close(ended)
		if before != nil {
			<-before
		}
		k.run(ctx)
	}()
}

func (k *collector) unlook() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lookers--; k.lookers == 0 && !k.closed {
		k.leave = time.AfterFunc(linger, k.idle)
	}
}

// idle ends the session if nobody looks.
func (k *collector) idle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lookers == 0 && k.stop != nil {
		k.stop()
		k.stop = nil
	}
}

// close ends everything and waits for that.
func (k *collector) close() {
	k.mu.Lock()
	k.closed = true
	if k.leave != nil {
		k.leave.Stop()
	}
	if k.stop != nil {
		k.stop()
		k.stop = nil
	}
	ended := k.ended
	k.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// session returns the client that reads.
func (k *collector) session() *client.Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.c
}

// run reads until ctx ends.
func (k *collector) run(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := k.dial(ctx)
		if err == nil {
			k.use(c)
			err = k.follow(ctx, c)
			k.use(nil)
			_ = c.Close() // ends the session
		}
		k.fail(ctx, err)
		pause(ctx, tryAgain)
	}
}

func (k *collector) use(c *client.Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.c, k.sent, k.failure = c, time.Time{}, nil
}

// fail notes why nothing is read. The end of ctx is no failure: nobody looks.
func (k *collector) fail(ctx context.Context, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if k.failure == nil {
		k.failed = time.Now()
	}
	k.failure = err
	k.tell()
}

// tell wakes whoever looks. The caller holds mu.
func (k *collector) tell() {
	close(k.news)
	k.news = make(chan struct{})
}

// follow reads by one client. It returns when the client is closed, or refuses.
func (k *collector) follow(ctx context.Context, c *client.Client) error {
	for ctx.Err() == nil {
		feed, deep, err := k.open(ctx, c)
		if err == nil {
			err = k.read(ctx, feed, deep)
			feed.Close()
		}
		if errors.Is(err, client.ErrClosed) {
			return err
		}
		k.fail(ctx, err)
		pause(ctx, tryAgain)
	}
	return ctx.Err()
}

// open opens the feed that costs the servers least.
func (k *collector) open(ctx context.Context, c *client.Client) (feed inside.Feed, deep bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit) // then the error says why
	defer cancel()
	if !k.shallow { // read and written by this goroutine alone
		feed, err = inner.Feed(ctx, c, k.m.tree.top, inside.FeedDeep)
		if !errors.Is(err, client.ErrUnsupported) {
			return feed, true, err
		}
	}
	feed, err = inner.Feed(ctx, c, k.m.tree.top, inside.FeedOneShot)
	return feed, false, err
}

// read keeps the model up to date until the feed is over. Changes of a tenth of a second are
// read together.
func (k *collector) read(ctx context.Context, feed inside.Feed, deep bool) error {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		more, err := k.take(feed, deep)
		if err == nil && more {
			more, err = k.ask(ctx, feed, deep)
		}
		if err != nil {
			return err
		}
		k.show()
		if more {
			continue // much is to be read: the limiter says how fast
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// take takes the events that have come. more is set if something is to be read.
func (k *collector) take(feed inside.Feed, deep bool) (more bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	events, err := feed.Take()
	k.hear(events, deep)
	if k.m.epoch > 0 && time.Since(k.heard) >= pulse { // is the server there?
		k.m.reads.want(want{k.m.tree.top, theData}, first)
	}
	return k.m.reads.left() > 0, err
}

// hear takes events. The caller holds mu.
func (k *collector) hear(events []inside.FeedEvent, deep bool) {
	if len(events) > 0 && events[0].Kind == inside.FeedMissed {
		k.m.begin(deep)
		k.m.counts = k.c != nil && k.c.Product() == "Apache ZooKeeper"
		events = events[1:]
		k.failure = nil
	}
	k.m.heard(events)
}

// ask reads the next parts. more is set if more are to be read at once.
func (k *collector) ask(ctx context.Context, feed inside.Feed, deep bool) (more bool, err error) {
	k.mu.Lock()
	most := k.batch
	if !deep {
		most = burst // a request for each part
	}
	wants := k.m.next(most)
	k.mu.Unlock()
	asks := make([]inside.Ask, len(wants))
	for i, w := range wants {
		asks[i] = inside.Ask{Path: w.path, Children: w.what == theChildren}
	}
	requests := 1
	if !deep {
		requests = len(wants)
	}
	if err := k.limit.wait(ctx, requests); err != nil {
		return false, err // a feed that begins again wants everything
	}
	k.sends(requests)
	_, answers, err := feed.Read(ctx, asks)
	k.mu.Lock()
	defer k.mu.Unlock()
	sent := k.sent
	k.sent = time.Time{}
	switch {
	case err == nil:
	case errors.Is(err, client.ErrReplyTooLarge) && len(wants) > 1:
		k.batch = max(1, len(wants)/2)
		k.m.failed()
		return true, nil
	case errors.Is(err, client.ErrReplyTooLarge):
		answers = []inside.Answer{{Err: err}}
	case ctx.Err() != nil:
		return false, err
	case errors.Is(err, client.ErrUnsupported):
		k.shallow = true
		return false, err
	default: // the connection is another one, or none: an event will say so
		k.m.failed()
		return false, nil
	}
	k.heard = sent
	k.fresh = k.fresh && ctx.Err() != nil // this goroutine may be the one before
	events, err := feed.Take()
	if len(events) == 0 || events[0].Kind != inside.FeedMissed {
		k.m.answered(wants, answers)
		k.resize(answers)
	}
	k.hear(events, deep)
	return k.m.behind() || k.m.reads.left() >= k.batch, err
}

func (k *collector) sends(requests int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent = time.Now()
	k.count += int64(requests)
}

// resize chooses how many parts the next request has. The caller holds mu.
func (k *collector) resize(answers []inside.Answer) {
	bytes := 0
	for _, a := range answers {
		bytes += len(a.Data)
		for _, name := range a.Names {
			bytes += len(name)
		}
	}
	switch {
	case bytes > batchBytes:
		k.batch = max(leastBatch, k.batch/2)
	case len(answers) >= k.batch && bytes < batchBytes/2:
		k.batch = min(mostBatch, 2*k.batch)
	}
}

// show looks at the locks and wakes whoever looks. Looking takes a fifth of the time at most, but
// for the look that everything waits for.
func (k *collector) show() {
	k.mu.Lock()
	defer k.mu.Unlock()
	begun := time.Now()
	if begun.Before(k.next) && !k.m.undrawn() {
		return
	}
	k.m.look(begun, k.heard)
	k.next = begun.Add(max(lookEvery, 5*time.Since(begun)))
	if k.m.version != k.shown {
		k.shown = k.m.version
		k.tell()
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
