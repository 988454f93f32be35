package client_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/zktest"
)

// reader is the reader of a feed.
type reader struct {
	*rig
	inside.Feed

	mode inside.FeedMode
	head int64 // of the last read
}

// everyFeed runs f with each kind of watches.
func everyFeed(t *testing.T, f func(*rig, inside.FeedMode)) {
	t.Helper()
	for name, tt := range map[string]struct {
		version zktest.Version
		mode    inside.FeedMode
	}{
		"persistent 3.9": {zktest.ZooKeeper39, inside.FeedDeep},
		"persistent 3.8": {zktest.ZooKeeper380, inside.FeedDeep},
		"one-shot 3.9":   {zktest.ZooKeeper39, inside.FeedOneShot},
		"one-shot 3.5":   {zktest.ZooKeeper35, inside.FeedOneShot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { f(r, tt.mode) }, zktest.WithVersion(tt.version))
		})
	}
}

// feed opens a feed, whose first event says that the reader knows nothing.
func (r *rig) feed(c *client.Client, path string, mode inside.FeedMode) *reader {
	r.Helper()
	f, err := inner.Feed(r.Ctx, c, path, mode)
	r.Check(err)
	r.Cleanup(f.Close)
	one := &reader{rig: r, Feed: f, mode: mode}
	one.await("the first event", f.Ready())
	one.told("missed ")
	return one
}

var feedNames = [...]string{
	inside.FeedMissed: "missed", inside.FeedCreated: "created", inside.FeedDeleted: "deleted",
	inside.FeedData: "data", inside.FeedChildren: "children",
}

// told takes the events and compares them.
func (f *reader) told(want ...string) []inside.FeedEvent {
	f.Helper()
	events, err := f.Take()
	f.Check(err)
	var got []string
	for _, e := range events {
		got = append(got, feedNames[e.Kind]+" "+e.Path)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("events %q, want %q", got, want)
	}
	return events
}

// read reads the data of a node.
func (f *reader) read(path string) inside.Answer { return f.ask(inside.Ask{Path: path}) }

func (f *reader) ask(one inside.Ask) inside.Answer {
	f.Helper()
	head, answers, err := f.Read(f.Ctx, []inside.Ask{one})
	f.Check(err)
	f.head = head
	if f.mode != inside.FeedOneShot && answers[0].Unwatched {
		f.Errorf("%+v leaves no watch", one)
	}
	return answers[0]
}

// oneShots are the one-shot watches on the server.
func (r *rig) oneShots() (paths []string) {
	for _, w := range r.Srv.Watches() {
		if !w.Persistent && !w.Recursive {
			paths = append(paths, w.Path)
		}
	}
	return paths
}

// settle waits until events have arrived and watches without readers are removed.
func (r *rig) settle() { time.Sleep(5 * time.Second) }
