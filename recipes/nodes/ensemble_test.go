package nodes_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The answer to a create is lost, and the client comes to a server that does not know
// the node yet: there is no second node. The same after a lost session.
func TestLaggingServer(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			e := zktest.NewEnsemble(t, 3, zktest.WithSeed(seed+1), zktest.WithTick(time.Second),
				zktest.WithLatency(50*time.Microsecond, time.Millisecond))
			link := e.Client("a")
			c, err := client.Connect(ctx, strings.Join(link.Servers(), ","), client.WithSessionTimeout(sessionTimeout),
				client.WithDialer(link.DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			var lost []*zktest.Rule
			for i := range e.Size() {
				if m := e.Server(i + 1); !m.Leading() {
					m.Lag(2 * time.Second)
				}
				lost = append(lost, e.Server(i+1).LoseReply(zktest.Match{Op: zktest.OpCreate, PathPrefix: "/w"}))
			}
			n, err := nodes.NewPersistentNode(c, nodes.EphemeralSequential, "/w", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Start(ctx); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := n.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * sessionTimeout)
				all := slices.DeleteFunc(e.Leader().Children("/"), func(name string) bool { return name == "zookeeper" })
				if len(all) != 1 || "/"+all[0] != n.Status().Path {
					t.Errorf("seed %d: nodes %v, %+v", seed, all, n.Status())
				}
				link.ExpireSession()
				time.Sleep(sessionTimeout)
			}
			if fired := lost[0].Fired() + lost[1].Fired() + lost[2].Fired(); fired == 0 {
				t.Error("nothing was tested")
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
