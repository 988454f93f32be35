package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/docent-go/docent/cmd/docent/internal/ui"
	"github.com/docent-go/docent/zktest"
)

// soon is within which a page says that there is no server.
const soon = 5 * time.Second

// When the server is killed the screen says so within five seconds, and shows what is new when
// it is back.
func TestBrowserSaysThatTheServerIsLost(t *testing.T) { //nolint:paralleltest // it measures times
	r := newRig(t, ui.Config{})
	a := r.connect("a")
	r.stand(a, "/locks/orders", "10.0.0.7 pid=1 client=billing")
	b := browser(t, 1100, 700)
	r.run(b, chromedp.Navigate(r.http.URL+"/#/lock?at=/locks/orders"), has("Live"), has("billing on 10.0.0.7"))
	r.srv.Stop()
	begun := time.Now()
	r.run(b, has("No connection to ZooKeeper since"), has("What follows was seen at"))
	if took := time.Since(begun); took > soon {
		t.Errorf("it took %v to say so", took)
	}
	r.run(b, has("billing on 10.0.0.7"), shot("lost"))
	r.srv.Resume()
	r.run(b, has("Live"))
	r.stand(a, "/locks/orders", "10.0.0.8 pid=2 client=shop")
	r.run(b, has("shop on 10.0.0.8"))
}

// A server that lets requests wait is told from one that is gone.
func TestBrowserSaysThatTheServerIsSlow(t *testing.T) { //nolint:paralleltest // it measures times
	r := newRig(t, ui.Config{})
	r.stand(r.connect("a"), "/locks/orders", "10.0.0.7 pid=1 client=billing")
	b := browser(t, 1100, 700)
	r.run(b, chromedp.Navigate(r.http.URL), has("Live"), has("billing on 10.0.0.7"))
	r.srv.Client("ui").Partition()
	begun := time.Now()
	r.run(b, has("has not answered for"), has("What follows was seen at"))
	if took := time.Since(begun); took > soon {
		t.Errorf("it took %v to say so", took)
	}
	r.run(b, shot("slow"))
	r.srv.Client("ui").Heal()
	r.run(b, has("Live"))
}

// A page that cannot reach docent says so, too, and comes back.
func TestBrowserSaysThatDocentIsGone(t *testing.T) { //nolint:paralleltest // it measures times
	r := newRig(t, ui.Config{})
	r.stand(r.connect("a"), "/locks/orders", "10.0.0.7 pid=1 client=billing")
	b := browser(t, 1100, 700)
	r.run(b, chromedp.Navigate(r.http.URL), has("Live"), has("billing on 10.0.0.7"))
	at := r.http.Listener.Addr().String()
	r.http.CloseClientConnections()
	r.check(r.http.Listener.Close())
	begun := time.Now()
	r.run(b, has("docent ui does not answer since"))
	if took := time.Since(begun); took > soon {
		t.Errorf("it took %v to say so", took)
	}
	r.serve(at)
	r.run(b, has("Live"))
}

// With a slow network all is there, and a page that opens before a connection says what it waits for.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{}, zktest.WithLatency(150*time.Millisecond, 200*time.Millisecond))
	r.srv.Client("ui").Refuse()
	r.stand(r.connect("a"), "/locks/orders", "10.0.0.7 pid=1 client=billing")
	s := r.open("locks", "", "")
	s.until("no connection", func(st state, _ picture) bool { return st.State == "connecting" && st.Detail != "" })
	r.srv.Client("ui").Accept()
	s.until("the lock", func(st state, p picture) bool { return st.State == "live" && len(p.Locks) == 1 })
}

// Docent has no session while no page is open. A page that opens again says so of its old picture: neither
// that the connection was lost, nor that what it shows is live.
func TestPageThatOpensAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	a := r.connect("a")
	old := r.stand(a, "/locks/orders", "10.0.0.7 pid=1 client=billing")
	s := r.open("locks", "", "")
	s.until("the lock", func(st state, p picture) bool { return st.State == "live" && len(p.Locks) == 1 })
	s.close()
	for again := time.NewTicker(50 * time.Millisecond); len(r.srv.Sessions()) > 1; <-again.C { // ends with the test's time
	}
	r.check(r.srv.Delete(old))
	r.srv.Client("ui").Refuse()
	s = r.open("locks", "", "")
	s.until("why there is no connection", func(st state, _ picture) bool {
		if st.State != "connecting" || st.AsOf == 0 || strings.Contains(st.Detail, "canceled") {
			t.Errorf("before a connection the page says %+v", st)
		}
		return st.Detail != ""
	})
	seen := s.status.AsOf
	r.srv.Client("ui").Accept()
	s.until("what is there now", func(st state, p picture) bool {
		if st.State == "lost" || st.State == "live" && st.AsOf == seen {
			t.Errorf("the old picture is said to be of now: %+v", st)
		}
		return st.State == "live" && len(p.Locks) == 0
	})
}

// A session that has ended is told from a release, if it had several nodes. What happened while there was no
// connection is in the timeline, with the time in which it must have been.
func TestTimelineOverALostConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	a, b := r.connect("a"), r.connect("b")
	r.stand(a, "/locks/orders", "10.0.0.7 pid=1 client=billing")
	r.stand(a, "/locks/other", "10.0.0.7 pid=1 client=billing")
	r.stand(b, "/locks/orders", "10.0.0.8 pid=2 client=shop")
	s := r.open("lock", "/locks/orders", "")
	s.until("the first look", func(st state, p picture) bool { return st.State == "live" && len(p.Past) == 2 })
	r.srv.Client("ui").Cut()
	r.srv.Client("ui").Refuse()
	s.until("the cut", func(st state, _ picture) bool { return st.State == "lost" })
	cut := s.status.Since
	r.srv.Client("a").ExpireSession()
	r.srv.Client("ui").Accept()
	s.until("the hand-over", func(st state, p picture) bool { return st.State == "live" && len(p.Past) == 4 })
	past := s.last.Past
	if past[0].What != "holds" || past[1].What != "ended" || past[1].N != 2 || past[1].Who != "billing on 10.0.0.7 pid 1" {
		t.Errorf("%+v", past)
	}
	if h := past[1]; h.From > cut || h.By < cut {
		t.Errorf("it ended after %d and by %d; the connection was cut at %d", h.From, h.By, cut)
	}
}

// Servers without persistent watches, and those of another product, are asked for one node
// after the other, within the same bound.
func TestOldServers(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]zktest.Option{
		"3.5":    {zktest.WithVersion(zktest.ZooKeeper35)},
		"keeper": {zktest.WithProfile(zktest.ClickHouseKeeper)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, ui.Config{}, opts...)
			var requests asked
			requests.client = "ui"
			r.srv.OnRequest(requests.hear)
			r.crowd(10, 60, 3)
			s := r.open("locks", "", "")
			s.until("all", func(st state, p picture) bool {
				return st.State == "live" && len(p.Locks) == 10 && p.Locks[9].Waiters == 5
			})
			if most := requests.most(); most > 50 {
				t.Errorf("%d requests in a second", most)
			}
			held := s.last.Locks[0].Holder.Path
			r.check(r.srv.Delete(held))
			s.until("the hand-over", func(_ state, p picture) bool {
				for _, l := range p.Locks {
					if l.Waiters == 4 && l.Holder != nil && l.Holder.Path != held {
						return true
					}
				}
				return false
			})
		})
	}
}

// A node that may not be read has a place in line, and no name.
func TestHiddenNode(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	a := r.connect("a")
	r.stand(a, "/locks/orders", "10.0.0.7 pid=1 client=billing")
	r.secret(a, "/locks/orders/"+nameOf(1, "lock-"))
	s := r.open("lock", "/locks/orders", "")
	s.until("both", func(st state, p picture) bool { return len(p.Queue) == 2 && p.Queue[1].Hidden })
	if q := s.last.Queue[1]; q.State != "waits" || q.Client != "" || q.Since != 0 {
		t.Errorf("%+v", q)
	}
}
