package zkconn_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A reconfiguration is a call of the client: it obeys the version, and Close ends it.
func TestReconfig(t *testing.T) {
	t.Parallel()
	sum := sha1.Sum([]byte("super:pw"))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		e := zktest.NewEnsemble(t, 3, zktest.WithReconfig(),
			zktest.WithSuperDigest("super:"+base64.StdEncoding.EncodeToString(sum[:])))
		link := e.Client("a")
		c := testrig.Connect(ctx, t, "zk1,zk2,zk3", link.DialContext, client.WithAuth("digest", "super:pw"), client.WithNamespace("ns"))
		conn, _ := zkconn.New(ctx, c)
		before, err := c.Ensemble(ctx)
		testrig.Check(t, err)
		two := before.Members[1].Line
		for name, bad := range map[string]struct {
			join, leave []string
			version     int64
			want        error
		}{
			"an old version": {nil, []string{"2"}, before.Version - 1, zk.ErrBadVersion},
			"version 0":      {nil, []string{"2"}, 0, zk.ErrBadVersion},
			"no id":          {nil, []string{"two"}, -1, zk.ErrBadArguments},
			"no member":      {[]string{"hello"}, nil, -1, zk.ErrBadArguments},
			"none":           {nil, nil, -1, zk.ErrBadArguments},
		} {
			if stat, err := conn.IncrementalReconfig(bad.join, bad.leave, bad.version); err != bad.want || stat == nil { //nolint:errorlint // as their users compare
				t.Errorf("%s: %v, %v", name, stat, err)
			}
		}
		stat, err := conn.IncrementalReconfig(nil, []string{"2"}, before.Version)
		testrig.Check(t, err)
		less, err := c.Ensemble(ctx)
		testrig.Check(t, err)
		if len(less.Members) != 2 || stat.Mzxid != less.Version || stat.Version != -1 {
			t.Errorf("%+v, %+v", less, stat)
		}
		_, err = conn.Reconfig([]string{before.Members[0].Line, two, before.Members[2].Line}, less.Version)
		testrig.Check(t, err)
		if all, err := c.Ensemble(ctx); err != nil || len(all.Members) != 3 {
			t.Errorf("%+v, %v", all, err)
		}

		link.Refuse()
		link.Cut()
		ended := make(chan error, 1)
		go func() {
			_, err := conn.Reconfig([]string{two}, -1)
			ended <- err
		}()
		synctest.Wait()
		conn.Close()
		synctest.Wait()
		select {
		case err := <-ended:
			if err != zk.ErrConnectionClosed { //nolint:errorlint // as their users compare
				t.Errorf("after Close: %v", err)
			}
		default:
			t.Error("Close has not ended the call")
		}
		link.Accept()
	})
}
