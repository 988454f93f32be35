package client_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// fleet is three servers, of which the third leads, and clients on them.
type fleet struct {
	*testing.T
	ctx context.Context
	e   *zktest.Ensemble
}

func onFleet(t *testing.T, f func(*fleet), opts ...zktest.Option) {
	t.Helper()
	testrig.Ensemble(t, func(ctx context.Context, t *testing.T, e *zktest.Ensemble) {
		f(&fleet{T: t, ctx: ctx, e: e})
	}, opts...)
}

func (f *fleet) check(err error) {
	f.Helper()
	testrig.Check(f.T, err)
}

// connect returns a client of all members that starts at one of them.
func (f *fleet) connect(name string, at int) *client.Client {
	f.Helper()
	f.only(name, at)
	return testrig.Connect(f.ctx, f.T, "zk1:2181,zk2:2181,zk3:2181", f.e.Client(name).DialContext)
}

// only lets a client dial one member, or for 0 all of them.
func (f *fleet) only(name string, member int) {
	link := f.e.Client(name)
	for i := 1; i <= f.e.Size(); i++ {
		if member == 0 || i == member {
			link.To(i).Accept()
		} else {
			link.To(i).Refuse()
		}
	}
}

// A member that lags does not take a client that has seen a newer transaction.
// Any request may have seen it, and the caller need not have waited for the
// answer.
func TestLaggingMemberIsRefused(t *testing.T) {
	t.Parallel()
	for name, see := range map[string]func(f *fleet, c, other *client.Client){
		"its own write": func(f *fleet, c, _ *client.Client) {
			_, err := c.Set(f.ctx, "/a", []byte("new"), client.AnyVersion)
			f.check(err)
		},
		"its own transaction": func(f *fleet, c, _ *client.Client) {
			_, err := c.Multi(f.ctx, client.SetOp("/a", []byte("new"), client.AnyVersion))
			f.check(err)
		},
		"a read of another's write": func(f *fleet, c, other *client.Client) {
			_, err := other.Set(f.ctx, "/a", []byte("new"), client.AnyVersion)
			f.check(err)
			f.check(c.Sync(f.ctx, "/a"))
			data, _, err := c.Get(f.ctx, "/a")
			if err != nil || string(data) != "new" {
				f.Fatalf("Get = %q, %v", data, err)
			}
		},
		"a write that was given up": func(f *fleet, c, _ *client.Client) {
			ctx, cancel := context.WithTimeout(f.ctx, time.Millisecond)
			defer cancel()
			f.e.SlowLog(100 * time.Millisecond)
			if _, err := c.Set(ctx, "/a", []byte("new"), client.AnyVersion); !client.UnknownOutcome(err) {
				f.Fatalf("Set = %v", err)
			}
			f.e.SlowLog(0)
			time.Sleep(time.Second) // its answer comes
		},
	} {
		onFleet(t, func(f *fleet) {
			other, c := f.connect("other", 3), f.connect("a", 2)
			_, err := c.Create(f.ctx, "/a", []byte("old"))
			f.check(err)
			time.Sleep(time.Second) // until every member has it
			s, err := c.Session(f.ctx)
			f.check(err)
			f.e.Server(1).HoldCommits()
			see(f, c, other)

			f.only("a", 1)
			if n := f.e.Client("a").Cut(); n != 1 {
				f.Fatalf("%d connections were cut", n)
			}
			ctx, cancel := context.WithTimeout(f.ctx, testrig.SessionTimeout/4)
			defer cancel()
			if data, _, err := c.Get(ctx, "/a"); err == nil {
				f.Errorf("%s: the member that lags has answered %q", name, data)
			}
			f.e.Server(1).ReleaseCommits()
			data, _, err := c.Get(f.ctx, "/a")
			if err != nil || string(data) != "new" {
				f.Errorf("%s: Get = %q, %v", name, data, err)
			}
			if err := s.Err(); err != nil {
				f.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Whatever member a client comes to, what it reads never gets older within a
// session.
func TestReadsNeverGoBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		onFleet(t, func(f *fleet) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			writer, c := f.connect("writer", 3), f.connect("a", 2)
			_, err := writer.Create(f.ctx, "/n", []byte("0"))
			f.check(err)
			f.only("a", 0)
			for i := 1; i < f.e.Size(); i++ {
				f.e.Server(i).Lag(time.Duration(rnd.IntN(800)) * time.Millisecond)
			}
			newest, reads, cuts := 0, 0, 0
			for n := 1; n < 300; n++ {
				_, err := writer.Set(f.ctx, "/n", []byte(fmt.Sprint(n)), client.AnyVersion)
				f.check(err)
				if rnd.IntN(10) == 0 {
					cuts += f.e.Client("a").Cut()
				}
				data, _, err := c.Get(f.ctx, "/n")
				f.check(err)
				got, err := strconv.Atoi(string(bytes.TrimSpace(data)))
				f.check(err)
				if got < newest {
					f.Fatalf("seed %d: read %d after %d", seed, got, newest)
				}
				newest = got
				reads++
			}
			if reads < 200 || cuts < 10 {
				f.Errorf("%d reads, %d cuts: hardly anything is tested", reads, cuts)
			}
		}, zktest.WithSeed(seed))
	}
}
