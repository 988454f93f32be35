package nodes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// The answer to a create is lost, and the client comes to a server that does not
// know the node yet. There is no second node, also after a lost session. Close
// leaves nothing, also if the new session's server did not know the node.
func TestLaggingServer(t *testing.T) {
	t.Parallel()
	all := modes()
	for seed := range uint64(5 * len(all)) {
		tt := all[seed%uint64(len(all))]
		testrig.Ensemble(t, func(ctx context.Context, t *testing.T, e *zktest.Ensemble) {
			link := e.Client("a")
			c := testrig.Connect(ctx, t, strings.Join(link.Servers(), ","), link.DialContext)
			defer func() { _ = c.Close() }()
			var lost []*zktest.Rule
			for i := range e.Size() {
				if m := e.Server(i + 1); !m.Leading() {
					m.Lag(2 * time.Second)
				}
				lost = append(lost, e.Server(i+1).LoseReply(zktest.Match{Where: creates}))
			}
			n, err := nodes.NewPersistentNode(c, tt.mode, "/w", nil, lazily(tt.opts...)...)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Start(ctx); err != nil {
				t.Fatal(err)
			}
			standing := func() []string {
				return slices.DeleteFunc(e.Leader().Children("/"), func(name string) bool { return name == "zookeeper" })
			}
			for range 2 {
				if err := n.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * testrig.SessionTimeout)
				all := standing()
				if len(all) != 1 || "/"+all[0] != n.Status().Path {
					t.Errorf("seed %d, %v: nodes %v, %+v", seed, tt.mode, all, n.Status())
				}
				if seed%2 == 0 {
					link.ExpireSession()
				} else { // the servers keep the lost session for a while
					s, err := c.Session(ctx)
					if err != nil {
						t.Fatal(err)
					}
					link.PartitionReplies()
					<-s.Context().Done()
					link.Heal()
				}
				time.Sleep(testrig.SessionTimeout)
			}
			if fired := lost[0].Fired() + lost[1].Fired() + lost[2].Fired(); fired == 0 {
				t.Errorf("seed %d, %v: nothing was tested", seed, tt.mode)
			}
			if err := n.Close(); err != nil || len(standing()) != 0 {
				t.Errorf("seed %d, %v: left %v: %v", seed, tt.mode, standing(), err)
			}
		}, zktest.WithSeed(seed+1))
	}
}

// creates reports whether a request makes one node.
func creates(q zktest.Request) bool {
	return q.Op == zktest.OpCreate || q.Op == zktest.OpCreate2 || q.Op == zktest.OpCreateContainer
}
