package caches_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/internal/inside"
)

var inner = inside.Of[client.Client, client.Session, client.Op]()

// order is a feed, and the transactions that its events must be of.
type order struct {
	*testing.T
	feed   inside.Feed
	zxids  chan int64 // of the transactions on the node, by the writer
	known  []int64
	events []inside.FeedEvent
	head   int64 // of the newest answer
	since  int64 // the head when the feed began
}

// TestEventsBeforeAnswers: an event of a transaction comes before every answer that
// shows it, and after every answer that does not. All answers to one request that reads many
// nodes show the same state. The rounds of caches rest on that.
func TestEventsBeforeAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := harness.StartEnsemble(ctx, t, 3)
	if _, err := e.AwaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	writer := connect(ctx, t, e.Node(1).Addr())
	for mode, name := range map[inside.FeedMode]string{inside.FeedDeep: "persistent", inside.FeedOneShot: "one-shot"} {
		t.Run(name, func(t *testing.T) {
			path := "/" + name
			if _, err := writer.Create(ctx, path, nil); err != nil {
				t.Fatal(err)
			}
			feed, err := inner.Feed(ctx, connect(ctx, t, e.Node(2).Addr()), path, mode)
			if err != nil {
				t.Fatal(err)
			}
			defer feed.Close()
			o := &order{T: t, feed: feed, zxids: make(chan int64, 1<<16)}
			if _, err := feed.Take(); err != nil {
				t.Fatal(err)
			}
			if o.since, err = feed.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			busy, stop := context.WithTimeout(ctx, 10*time.Second)
			defer stop()
			done := make(chan error, 1)
			go func() { done <- o.write(busy, writer, path) }()
			reads := 0
			for busy.Err() == nil {
				o.read(ctx, path, mode == inside.FeedOneShot)
				reads++
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			o.collect()
			o.check(mode == inside.FeedOneShot)
			t.Logf("%d reads, %d transactions, %d events", reads, len(o.known), len(o.events))
			if len(o.events) < 100 || reads < 100 {
				t.Error("too few")
			}
		})
	}
}

// write sets the node again and again.
func (o *order) write(ctx context.Context, c *client.Client, path string) error {
	for ctx.Err() == nil {
		stat, err := c.Set(context.WithoutCancel(ctx), path, nil, client.AnyVersion)
		if err != nil {
			return err
		}
		o.zxids <- stat.Mzxid
	}
	return nil
}

// read reads the node, and looks at the events that came with the answer.
func (o *order) read(ctx context.Context, path string, oneShot bool) {
	o.Helper()
	before := o.head
	asks := []inside.Ask{{Path: path}}
	if !oneShot {
		asks = slices.Repeat(asks, 200)
	}
	head, answers, err := o.feed.Read(ctx, asks)
	if err != nil {
		o.Fatal(err)
	}
	for _, a := range answers {
		if a.Stat != answers[0].Stat {
			o.Fatalf("the answers to one request with head %#x show %+v and %+v", head, answers[0].Stat, a.Stat)
		}
	}
	events, err := o.feed.Take()
	if err != nil {
		o.Fatal(err)
	}
	o.head = head
	mzxid := answers[0].Stat.Mzxid
	for _, event := range events {
		if event.Kind != inside.FeedData || event.After < before {
			o.Errorf("event %+v after an answer with head %#x", event, before)
		}
	}
	o.events = append(o.events, events...)
	// Persistent watches tell each transaction: all events up to the head have
	// come.
	if told := len(o.events); !oneShot && mzxid > o.since {
		o.collect()
		if shown := o.upTo(o.head); told < shown {
			o.Fatalf("an answer with head %#x shows %d transactions, and %d events have come", o.head, shown, told)
		} else if shown > 0 && o.known[shown-1] > mzxid {
			o.Fatalf("an answer with head %#x shows transaction %#x, and the newest was %#x", o.head, mzxid, o.known[shown-1])
		}
	}
}

// collect takes what the writer knows by now.
func (o *order) collect() {
	for {
		select {
		case zxid := <-o.zxids:
			o.known = append(o.known, zxid)
		default:
			return
		}
	}
}

// upTo is how many of the known transactions are not after zxid.
func (o *order) upTo(zxid int64) int {
	n, found := slices.BinarySearch(o.known, zxid)
	if found {
		n++
	}
	return n
}

// check compares the bounds of events with their transactions. A persistent watch
// has an event for each transaction, one by one. A one-shot watch may miss
// transactions between two events, so each event has a transaction that fits.
func (o *order) check(oneShot bool) {
	o.Helper()
	for i, event := range o.events {
		switch {
		case !oneShot && i < len(o.known) && event.After >= o.known[i]:
			o.Errorf("event %d of transaction %#x came after an answer with head %#x", i, o.known[i], event.After)
		case oneShot && o.upTo(event.After) >= len(o.known):
			o.Errorf("event %d with bound %#x is of no transaction", i, event.After)
		}
	}
}
