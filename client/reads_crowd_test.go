package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// ChildrenData reads more than a MiB with a small limit of answers, one huge child among many,
// and says which child cannot be read, whatever the servers have.
func TestChildrenDataOfAllSizes(t *testing.T) {
	t.Parallel()
	for _, version := range []zktest.Option{zktest.WithVersion(zktest.ZooKeeper39), zktest.WithVersion(zktest.ZooKeeper35), zktest.WithProfile(zktest.ClickHouseKeeper)} {
		bubble(t, func(r *rig) {
			want := map[string]int{}
			for i := range 200 {
				size := []int{0, 10, 1000, 40_000}[i%4]
				name := fmt.Sprint("n", i)
				want[name] = size
				r.create("/d/"+name, string(bytes.Repeat([]byte{byte(i)}, size)))
			}
			r.create("/d/huge", string(make([]byte, 100_000)))
			want["huge"] = 100_000
			c := r.Connect("a", client.WithMaxReply(110_000))
			check := func(all []client.ChildData, err error) {
				t.Helper()
				r.Check(err)
				if len(all) != len(want) {
					t.Errorf("%d of %d", len(all), len(want))
				}
				for _, child := range all {
					if n, has := want[child.Name]; !has || n != len(child.Data) || int(child.Stat.DataLength) != n {
						t.Errorf("%s: %d bytes, %d in the stat, want %d", child.Name, len(child.Data), child.Stat.DataLength, n)
					}
				}
			}
			all, _, err := c.ChildrenData(r.Ctx, "/d")
			check(all, err)
			r.Srv.LoseReply(zktest.Match{Client: "a", Nth: 3})
			all, _, err = c.ChildrenData(r.Ctx, "/d")
			check(all, err)
			s := r.Session(c)
			_, _, err = r.Connect("b", client.WithMaxReply(70_000)).ChildrenData(r.Ctx, "/d")
			testrig.WantErr(t, err, client.ErrReplyTooLarge)
			wantErrText(t, err, "/d/huge", "n1:")
			r.secret("/d/secret", "u", "1")
			_, _, err = c.ChildrenData(r.Ctx, "/d")
			testrig.WantErr(t, err, client.ErrNoAuth)
			wantErrText(t, err, "/d/secret", "huge")
			wantOutcome(t, err, client.OutcomeRefused)
			r.Check(s.Err())
		}, version)
	}
}

// Credentials that are replaced under load, with cuts, never make a call fail or use a mixture
// after the last replacement.
func TestReplaceUnderLoad(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for i := range 5 {
			r.secret(fmt.Sprint("/s", i), "u", fmt.Sprint(i))
		}
		c := r.Connect("a", client.WithAuth("digest", "u:0"))
		s := r.Session(c)
		ctx := r.Within(30 * time.Second)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, _, err := c.Get(ctx, "/s0"); err != nil && ctx.Err() == nil && !errors.Is(err, client.ErrNoAuth) {
						t.Error(err)
					}
				}
			})
		}
		for i := range 3 {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if err := c.ReplaceAuth(ctx, "digest", fmt.Sprint("u:", (n+i)%5)); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(time.Duration(n%7) * 50 * time.Millisecond)
				r.Srv.CutAll()
			}
		})
		wg.Wait()
		r.Check(c.ReplaceAuth(r.Ctx, "digest", "u:3"))
		r.Srv.CutAll()
		for i := range 5 {
			if got := r.reads(c, fmt.Sprint("/s", i)); got != (i == 3) {
				t.Errorf("/s%d: %v", i, got)
			}
		}
		if r.Session(c).ID() != s.ID() {
			t.Error("the session is another one")
		}
	}, zktest.WithLatency(time.Millisecond, 5*time.Millisecond))
}

// A server that becomes read-only and back, for clients of both kinds with logins and a lazy start.
func TestReadOnlyChanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/ch/ns/a", "x")
		open := func(name string, opts ...client.Option) *client.Client {
			c, err := r.Open("zk:2181/ch", name, append(opts, docentLogin(), client.WithNamespace("ns"), client.WithLazyConnect())...)
			r.Check(err)
			return c
		}
		r.Srv.SetReadOnly(true)
		reader, writer := open("r", client.WithReadOnly()), open("w")
		for i := range 6 {
			r.Srv.SetReadOnly(i%2 == 0)
			time.Sleep(time.Minute)
			data, _, err := reader.Get(r.Within(time.Minute), "/a")
			if err != nil || string(data) != "x" || r.Session(reader).ReadOnly() != (i%2 == 0) {
				t.Errorf("%d: %q, %v", i, data, err)
			}
			all, _, err := reader.ChildrenData(r.Within(time.Minute), "/")
			if err != nil || len(all) != 1 {
				t.Errorf("%d: %v, %v", i, all, err)
			}
			if _, err := reader.MultiRead(r.Within(time.Minute), client.GetOp("/a")); err != nil {
				t.Error(err)
			}
			if _, err := reader.CreateOrSet(r.Ctx, "/a", nil); !errors.Is(err, client.ErrReadOnly) {
				t.Error(err)
			}
			_, err = writer.CreateOrSet(r.Within(20*time.Second), "/a", []byte("x"))
			if (err == nil) != (i%2 == 1) || err != nil && !errors.Is(err, client.ErrNotConnected) {
				t.Errorf("%d: %v", i, err)
			}
			ids, err := reader.Identities(r.Within(time.Minute))
			if err != nil || len(ids) < 2 {
				t.Errorf("%d: %v, %v", i, ids, err)
			}
		}
	}, zktest.WithSASLUser("docent", "s3cret"))
}
