package client_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// suspensions counts how often c loses its connection from now on.
func (r *rig) suspensions(c *client.Client) func() int {
	from := len(r.Srv.Log())
	return func() (n int) {
		for _, q := range r.Srv.Log()[from:] {
			if q.Op == zktest.OpConnect {
				n++
			}
		}
		return n
	}
}

// What a server would answer by dropping the connection is refused before it is
// sent, whatever it is made of: the sum counts.
func TestTooLargeIsNeverSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		for _, path := range []string{"/g", "/v", "/w"} {
			r.create(path, "")
		}
		lost := r.suspensions(c)
		half := make([]byte, 600<<10)
		node := newNode{Dir: "/g", Prefix: "lock-", Data: half}
		for name, op := range map[string]func() error{
			"group and part": func() error {
				_, err := inner.CreateGroup(r.Ctx, s, []newNode{node}, client.SetOp("/v", half, client.AnyVersion))
				return err
			},
			"two nodes": func() error {
				_, err := inner.CreateGroup(r.Ctx, s, []newNode{node, node})
				return err
			},
			"two parts": func() error {
				_, err := c.Multi(r.Ctx, client.SetOp("/v", half, client.AnyVersion), client.SetOp("/w", half, client.AnyVersion))
				return err
			},
			"node": func() error {
				_, err := c.Create(r.Ctx, "/n", make([]byte, client.DefaultMaxRequest-10))
				return err
			},
			"protected node": func() error {
				_, err := c.Create(r.Ctx, "/n", make([]byte, client.DefaultMaxRequest-80), client.Protected())
				return err
			},
			"data": func() error {
				_, err := c.Set(r.Ctx, "/v", make([]byte, client.DefaultMaxRequest), client.AnyVersion)
				return err
			},
			"path": func() error { return c.Delete(r.Ctx, "/"+strings.Repeat("x", client.DefaultMaxRequest), 0) },
			"checks": func() error {
				parts := make([]client.Op, 30_000)
				for i := range parts {
					parts[i] = client.CheckOp("/"+strings.Repeat("x", 30), 0)
				}
				_, err := c.Multi(r.Ctx, parts...)
				return err
			},
		} {
			began := time.Now()
			err := op()
			testrig.WantErr(t, err, client.ErrTooLarge)
			wantOutcome(t, err, client.OutcomeNeverSent)
			wantErrText(t, err, "jute.maxbuffer", "tries")
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: refused after %v", name, took)
			}
		}
		if n := lost(); n != 0 {
			t.Errorf("the connection was lost %d times", n)
		}
		if kids := r.named("/g"); len(kids) != 0 {
			t.Errorf("made %v", kids)
		}
	})
}

// The largest request that a server takes is sent.
func TestLargestRequestIsSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.create("/v", "")
		lost := r.suspensions(c)
		const header, set = 8, 4 + len("/v") + 4 + 4
		largest := make([]byte, client.DefaultMaxRequest-header-set)
		_, err := c.Set(r.Ctx, "/v", largest, client.AnyVersion)
		r.Check(err)
		_, err = inner.CreateGroup(r.Ctx, s, []newNode{{Dir: "/g", Prefix: "n-", Data: largest[:len(largest)/2]}},
			client.SetOp("/v", largest[:len(largest)/2-500], client.AnyVersion))
		r.Check(err)
		if n := lost(); n != 0 {
			t.Errorf("the connection was lost %d times", n)
		}
	})
}

// A check of more nodes than one request has room for takes several.
func TestConfirmOfManyNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		path, missing := "/"+strings.Repeat("x", 200), "/"+strings.Repeat("y", 200)
		r.create(path, "")
		paths := make([]string, 12_000)
		for i := range paths {
			paths[i] = path
		}
		whole := r.holdAs(s, paths...)
		paths[len(paths)-1] = missing
		torn := r.holdAs(s, paths...)
		lost := r.suspensions(c)
		r.Srv.ResetCounts()
		r.Check(whole.Confirm(r.Ctx))
		if n := r.Srv.Count(zktest.OpMulti); n != 3 {
			t.Errorf("%d transactions", n)
		}
		err := torn.Confirm(r.Ctx)
		testrig.WantErr(t, err, zk.ErrNoNode)
		wantOutcome(t, err, client.OutcomeRefused)
		wantErrText(t, err, "part 11999 (check "+missing, "tries")
		if n := lost(); n != 0 {
			t.Errorf("the connection was lost %d times", n)
		}
	})
}

// Credentials that no request can carry are refused by Connect, which would get no answer.
// The limit counts whichever option comes first.
func TestCredentialsTooLarge(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		of := func(n int) client.Option { return client.WithAuth("digest", "u:"+strings.Repeat("p", n)) }
		fits := client.DefaultMaxRequest - len("digest"+"u:") - 20
		r.Connect("fits", of(fits))
		r.Connect("raised", of(fits+1), client.WithMaxRequest(2<<20), client.WithLazyConnect())
		for _, opts := range [][]client.Option{{of(fits + 1)}, {of(2 << 20)}, {of(2000), client.WithMaxRequest(2000)}, {client.WithMaxRequest(2000), of(2000)}} {
			_, err := client.Connect(r.Ctx, "zk", append(opts, client.WithLazyConnect())...)
			if !errors.Is(err, client.ErrTooLarge) || !strings.Contains(err.Error(), "WithAuth") || strings.Contains(err.Error(), "ppp") {
				r.Errorf("%v", err)
			}
		}
	})
}

// A server whose jute.maxbuffer is smaller than the client's hangs up. The error and the log
// name the request that was under way; small requests are not suspected.
func TestHangUpNamesTheRequest(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var logged strings.Builder
		c := r.Connect("a", client.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		r.create("/n", "")
		r.Srv.DropBefore(zktest.Match{Op: zktest.OpSetData, Times: zktest.Always})
		for n, want := range map[int]bool{10: false, 8000: true} {
			synctest.Wait()
			logged.Reset()
			_, err := c.Set(r.Within(3*time.Second), "/n", make([]byte, n), client.AnyVersion)
			synctest.Wait()
			const hint = "bytes was under way: the servers' jute.maxbuffer may be less"
			if err == nil || strings.Contains(err.Error(), hint) != want || strings.Contains(logged.String(), hint) != want {
				r.Errorf("%d bytes: %v\n%s", n, err, &logged)
			}
			if !errors.Is(err, io.EOF) || errors.Is(err, client.ErrTooLarge) || !client.UnknownOutcome(err) {
				r.Errorf("%d bytes: %v", n, err)
			}
		}
		if err := c.Delete(r.Within(3*time.Second), "/n", client.AnyVersion); err != nil {
			r.Error(err)
		}
	})
}

// A request on which the servers hang up again and again is given up, as each try costs all
// that the client does its connection. That is said of the large request alone.
func TestHangUpsAreGivenUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.create("/n", "")
		drop := r.Srv.DropBefore(zktest.Match{PathPrefix: "/n", Op: zktest.OpSetData, Times: zktest.Always})
		_, err := c.Set(r.Within(time.Hour), "/n", make([]byte, 8000), client.AnyVersion)
		testrig.WantErr(t, err, io.EOF)
		wantErrText(t, err, "hung up on 3 tries in a row", "refused")
		if n := drop.Fired(); n != 3 || !client.UnknownOutcome(err) {
			r.Errorf("%d tries: %v", n, err)
		}
		_, err = c.Set(r.Within(time.Minute), "/n", make([]byte, 10), client.AnyVersion)
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if n := drop.Fired(); n < 10 {
			r.Errorf("a small request was tried %d times", n-3)
		}
		drop.Remove()
		for range 4 { // a server that is restarted now and then
			once := r.Srv.DropBefore(zktest.Match{PathPrefix: "/n", Op: zktest.OpSetData, Times: 2})
			if _, err := c.Set(r.Within(time.Minute), "/n", make([]byte, 8000), client.AnyVersion); err != nil || once.Fired() != 2 {
				r.Errorf("after two hang-ups: %v", err)
			}
		}
	})
}
