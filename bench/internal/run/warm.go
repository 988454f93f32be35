package run

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/servers"
)

// warm lets the servers work before anything is measured: a new ZooKeeper server still
// compiles itself.
func (r *Runner) warm(ctx context.Context, st *stage) error {
	w := plan.Workload{Name: "warm", Kind: load.Mutex, Contenders: 4, Sessions: 4, Locks: 2}
	workers := map[servers.Family]string{servers.ZooKeeper: "zklock", servers.Etcd: "etcd", servers.Redis: "redsync"}
	for _, peer := range plan.Peers() {
		if st.ensembles[peer.Family] == nil || workers[peer.Family] != peer.Name {
			continue
		}
		e := &entrant{peer: peer, servers: st.ensembles[peer.Family], cell: &Cell{}}
		err := r.launch(ctx, e, &w, st)
		if err == nil {
			err = e.do(ctx, "open")
		}
		if err == nil {
			err = pause(ctx, r.Plan.WarmJava)
		}
		_ = e.quit(ctx) // the first error says what is wrong
		if err != nil {
			return fmt.Errorf("warm up with %s: %w", peer.Name, err)
		}
	}
	return nil
}
