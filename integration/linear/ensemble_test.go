package linear_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// TestEnsembleSchedules is TestSchedules on three servers. Followers are behind;
// servers stop, are cut off from each other, or lead in turn. A client that has
// lost an answer asks another server. One in twenty seeds is played.
func TestEnsembleSchedules(t *testing.T) {
	t.Parallel()
	schedules(t, 20, ensemble)
}

const members = 3

// ensemble is three servers.
func ensemble(g *game) servers {
	e := zktest.NewEnsemble(g.T, members, g.options()...)
	return servers{
		connect: strings.Join(e.Client("c0").Servers(), ","),
		behind:  true,
		dial: func(name string) func(context.Context, string, string) (net.Conn, error) {
			return e.Client(name).DialContext
		},
		disturb: func(name string) func() {
			i := 1 + g.random.IntN(members)
			switch g.random.IntN(10) {
			case 0:
				e.Client(name).Partition()
				return e.Client(name).Heal
			case 1:
				e.Client(name).Cut()
			case 2:
				e.Client(name).ExpireSession()
			case 3:
				e.Server(i).Stop()
				return e.Server(i).Resume
			case 4:
				e.Isolate(i)
				return e.Heal
			case 5, 6:
				if m := e.Server(i); !m.Leading() {
					m.Lag(time.Duration(g.random.IntN(1000)) * time.Millisecond)
				}
			default:
				for j := range members {
					g.loses(e.Server(j+1), name)
				}
			}
			return func() {}
		},
		heal: func() {
			e.Heal()
			for i := range members {
				e.Server(i + 1).Lag(0)
				e.Server(i + 1).ClearRules()
			}
		},
	}
}

// synced reads after a sync.
type synced struct {
	number

	c *client.Client
}

func (s synced) get(ctx context.Context) (int64, error) {
	if err := s.c.Sync(ctx, path); err != nil {
		return 0, err
	}
	return s.number.get(ctx)
}
