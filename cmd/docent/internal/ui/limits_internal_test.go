package ui

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/zktest"
)

// However the callers ask, no second has more requests than are allowed, and over a longer time
// there are as many as the rate.
func TestLimiter(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMilli(1_000_000)
	l := newLimiter(now)
	var times []time.Time
	begun := now
	for len(times) < 5000 {
		n := 1 + rnd.IntN(burst)
		if wait := l.take(n, now); wait > 0 {
			now = now.Add(wait + 1) // a timer may be late by a bit
			continue
		}
		for range n {
			times = append(times, now)
		}
		if rnd.IntN(20) == 0 {
			now = now.Add(time.Duration(rnd.IntN(int(2 * time.Second))))
		}
	}
	first := 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Second {
			first++
		}
		if n := i - first + 1; n > mostRequests {
			t.Fatalf("%d requests in a second", n)
		}
	}
	if took := now.Sub(begun); took > 5000*time.Second/10 {
		t.Errorf("5000 requests took %v", took)
	}
}

// Timelines keep the newest, of few locks many and of many locks few.
func TestTimelinesAreBounded(t *testing.T) {
	t.Parallel()
	var past timelines
	now := time.UnixMilli(1_000_000)
	for i := range 3 * mostHappenings {
		past.add("/hot", happening{by: now, n: i})
	}
	if all := past.of["/hot"]; len(all) != mostHappenings || all[len(all)-1].n != 3*mostHappenings-1 {
		t.Errorf("%d events", len(all))
	}
	for i := range 20_000 {
		now = now.Add(time.Second)
		past.add(fmt.Sprint("/lock", i), happening{by: now}, happening{by: now})
	}
	count := 0
	for _, all := range past.of {
		count += len(all)
	}
	if count > 2*allHappenings || past.of["/hot"] != nil || past.of["/lock19999"] == nil {
		t.Errorf("%d events of %d locks", count, len(past.of))
	}
}

// A crowd that comes or goes at once takes few lines.
func TestDifferenceOfACrowd(t *testing.T) {
	t.Parallel()
	before, after := &lock{}, &lock{}
	for i := range 500 {
		after.queue = append(after.queue, contender{path: fmt.Sprint("/l/", i), read: true})
	}
	for _, news := range [][]happening{
		difference(before, after, time.Time{}, time.UnixMilli(1), nil),
		difference(after, before, time.Time{}, time.UnixMilli(1), nil),
	} {
		n := 0
		for _, h := range news {
			n += 1 + h.n
		}
		if len(news) != mostAtOnce || n != 500 {
			t.Errorf("%d lines for %d contenders", len(news), n)
		}
	}
}

// What others wrote is shown without what moves a cursor, hides, or turns the text around.
func TestShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/locks/a b":        "/locks/a b",
		"a\x00b\x1b[2Jc\n":  "a\ufffdb\ufffd[2Jc\ufffd",
		"\u202egnp.exe":     "\ufffdgnp.exe",
		"\xff\xfe":          "\ufffd\ufffd",
		"日本語":               "日本語",
		"0123456789abcdefg": "0123456789abcdef…",
	} {
		if got := shown(text, 16); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]owner{
		"10.0.0.7":                         {host: "10.0.0.7"},
		"10.0.0.7 pid=12 client=shop":      {host: "10.0.0.7", pid: "12", client: "shop"},
		"::1 pid=12 host=db7 client=a b":   {host: "::1", hostname: "db7", pid: "12", client: "a b"},
		"? pid=1 client=x within=0xff":     {pid: "1", client: "x", outer: "0xff"},
		"10.0.0.7 pid=1 client=x within=?": {host: "10.0.0.7", pid: "1", client: "x within=?"},
		"node-1":                           {client: "node-1"},
		"":                                 {},
	} {
		if got, asked := ownerOf(data); got != want || asked {
			t.Errorf("%q: %+v, %v", data, got, asked)
		}
		if got, asked := ownerOf(data + " " + revocation); got != want || !asked {
			t.Errorf("%q with a request: %+v, %v", data, got, asked)
		}
	}
	if got, asked := ownerOf(revocation); got != (owner{}) || !asked {
		t.Errorf("%+v, %v", got, asked)
	}
}

// However many nodes come between two answers, a model keeps no more than its limit.
func TestModelIsBounded(t *testing.T) {
	t.Parallel()
	m := newModel("/", limits{nodes: 10, depth: 4})
	m.begin(true)
	m.data("/", inside.Answer{})
	var events []inside.FeedEvent
	for i := range 100 {
		events = append(events, inside.FeedEvent{Kind: inside.FeedCreated, Path: fmt.Sprint("/n", i)})
	}
	m.heard(events)
	for wants := m.next(16); len(wants) > 0; wants = m.next(16) {
		m.answered(wants, make([]inside.Answer, len(wants)))
	}
	if m.tree.count > 10 || !m.full {
		t.Errorf("%d nodes, full %v", m.tree.count, m.full)
	}
}

// A page is not said to be live before the locks that were read are in its pictures, also on a host that is so
// busy that a look takes long.
func TestLiveShowsAll(t *testing.T) {
	t.Parallel()
	c, err := client.Connect(t.Context(), zktest.NewServer(t).Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	k := newCollector("/", limits{nodes: 100, depth: 4}, nil)
	k.c, k.heard = c, time.Now()
	k.m.begin(true)
	k.next = time.Now().Add(time.Hour) // the look before has taken long
	k.show()
	if k.m.whole != 0 {
		t.Error("a look of what is not read")
	}
	k.m.list("/", inside.Answer{Names: []string{"l"}})
	k.m.list("/l", inside.Answer{Names: []string{named1(tagLock, 1)}})
	clear(k.m.due)
	if state := k.status(time.Now()).State; state != isReading {
		t.Errorf("%s before the locks were looked at", state)
	}
	k.show()
	if state := k.status(time.Now()).State; k.m.locks["/l"] == nil || state != isLive {
		t.Errorf("%s, all is read, and the page shows %v", state, k.m.locks)
	}
}
