package cache_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// commits is when a server ran its transactions.
type commits []struct {
	at   time.Time
	zxid int64
}

// upTo is the last transaction that the server had run at a time.
func (c commits) upTo(t time.Time) (zxid int64) {
	for _, one := range c {
		if !one.at.After(t) {
			zxid = one.zxid
		}
	}
	return zxid
}

// A snapshot has each transaction that the server had run at its time, which does not go back. A
// snapshot that is new is not old.
func TestAsOf(t *testing.T) {
	t.Parallel()
	const most = 50 * time.Millisecond // two rounds, of few round trips of 2 ms at most
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		var ran commits
		r.Srv.OnCommit(func(c zktest.Commit) {
			ran = append(ran, struct {
				at   time.Time
				zxid int64
			}{time.Now(), c.Zxid})
		})
		r.create("/app", "")
		for i := range 5 {
			r.create("/app/n"+strconv.Itoa(i), "")
		}
		exact := r.start(r.c, "/app", opts...)
		loose, err := cache.NewLooseTree(r.c, "/app", cache.Text, opts...)
		r.Check(err)
		r.Cleanup(loose.Close)
		r.Check(loose.Start(r.Ctx))
		last, seen := map[any]*cache.Snapshot[string]{}, 0
		look := func(of any, s *cache.Snapshot[string]) {
			before := last[of]
			if before != nil && s.Zxid() == before.Zxid() {
				return
			}
			seen++
			switch last[of] = s; {
			case s.Zxid() < ran.upTo(s.AsOf()):
				r.Fatalf("%T: snapshot %d is of %v, when the server had %d", of, s.Zxid(), s.AsOf(), ran.upTo(s.AsOf()))
			case before != nil && s.AsOf().Before(before.AsOf()):
				r.Fatalf("%T: snapshot %d is of %v, and the one before of %v", of, s.Zxid(), s.AsOf(), before.AsOf())
			case before != nil && time.Since(s.AsOf()) > most:
				r.Fatalf("%T: a new snapshot is %v old", of, time.Since(s.AsOf()))
			}
		}
		draw := rand.New(rand.NewPCG(1, 2))
		for i := 0; seen < 500 && i < 30_000; i++ {
			if draw.IntN(3) == 0 {
				r.Check(r.Srv.SetData("/app/n"+strconv.Itoa(draw.IntN(5)), []byte(strconv.Itoa(i))))
			}
			if draw.IntN(300) == 0 {
				r.Srv.Client("cache").Cut()
			}
			time.Sleep(time.Duration(draw.IntN(2000)) * time.Microsecond)
			look(exact, exact.Snapshot())
			look(loose, loose.Snapshot())
		}
		if seen < 500 {
			r.Errorf("%d snapshots", seen)
		}
	})
}
