package path_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// What one round of each key-value call does.
const (
	upsertsInRound = 300
	listed         = 2000 // nodes of a list
	listsInRound   = 2
)

// BenchmarkKeyValue measures the key-value calls of the client beside what programs write by
// hand, on a ZooKeeper server that it starts and on zktest:
//
//		cd bench/path
//		go test -run '^$' -bench KeyValue -benchtime 20x | tr '\t' '\n'
//
//	  - upsert: client.CreateOrSet of a node that exists, beside client.Set of the same node, and
//	    beside go-zookeeper's Set with a Create behind it if there is no node;
//	  - list: client.ChildrenData of 2,000 nodes, beside a loop of client.Get, and beside
//	    go-zookeeper's loop.
//
// One iteration is one round of every caller, in turn. Figures are medians over the rounds.
// "upsert-x-set" is the time of the upsert by that of Set in the same round: less is better.
// "list-loop-x" is the time of the loop by that of the list: more is better. "-zk-" is the
// same beside go-zookeeper.
func BenchmarkKeyValue(b *testing.B) {
	b.Run("real", func(b *testing.B) { keyValue(b, server(b.Context(), b)) })
	b.Run("zktest", func(b *testing.B) { keyValue(b, zktest.NewServer(b).Addr()) })
}

func keyValue(b *testing.B, addr string) {
	b.Helper()
	ctx := b.Context()
	c, conn := connect(ctx, b, addr), dial(b, addr)
	upsert, list := upserts(c, conn, directory(b, conn)), lists(b, c, conn, directory(b, conn))
	races := []*race{upsert, list}
	for range warmRounds {
		for _, r := range races {
			r.round(ctx, b, false)
		}
	}
	for _, r := range races {
		r.docentCosts, r.rawCosts, r.floorCosts = nil, nil, nil
	}
	b.ResetTimer()
	for n := range b.N {
		for _, r := range races {
			r.round(ctx, b, n%2 == 1)
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op") // of a round of every caller: says nothing
	b.ReportMetric(median(upsert.docentCosts, cost.middle), "upsert-us")
	b.ReportMetric(ratio(upsert.docentCosts, upsert.rawCosts), "upsert-x-set")
	b.ReportMetric(ratio(upsert.docentCosts, upsert.floorCosts), "upsert-x-zk-set")
	b.ReportMetric(median(list.docentCosts, cost.middle), "list-us")
	b.ReportMetric(ratio(list.rawCosts, list.docentCosts), "list-loop-x")
	b.ReportMetric(ratio(list.floorCosts, list.docentCosts), "list-zk-loop-x")
}

// ratio is the median over the rounds of the one by the other.
func ratio(one, other []cost) float64 {
	ratios := make([]float64, len(one))
	for i := range ratios {
		ratios[i] = one[i].middle() / other[i].middle()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

func upserts(c *client.Client, conn *zk.Conn, path string) *race {
	data := []byte("some bytes")
	return &race{
		name: "upsert", calls: upsertsInRound,
		docent: []func(context.Context) error{func(ctx context.Context) error {
			_, err := c.CreateOrSet(ctx, path, data)
			return err
		}},
		raw: []func(context.Context) error{func(ctx context.Context) error {
			_, err := c.Set(ctx, path, data, client.AnyVersion)
			return err
		}},
		floor: []func(context.Context) error{func(context.Context) error {
			_, err := conn.Set(path, data, -1)
			if errors.Is(err, zk.ErrNoNode) {
				_, err = conn.Create(path, data, 0, zk.WorldACL(zk.PermAll))
			}
			return err
		}},
	}
}

func lists(b *testing.B, c *client.Client, conn *zk.Conn, dir string) *race {
	b.Helper()
	for i := range listed {
		if _, err := conn.Create(fmt.Sprintf("%s/key-%d", dir, i), []byte("some bytes of a value"), 0, zk.WorldACL(zk.PermAll)); err != nil {
			b.Fatal(err)
		}
	}
	complete := func(n int, err error) error {
		if err == nil && n != listed {
			err = fmt.Errorf("%d nodes", n)
		}
		return err
	}
	return &race{
		name: "list", calls: listsInRound,
		docent: []func(context.Context) error{func(ctx context.Context) error {
			all, _, err := c.ChildrenData(ctx, dir)
			return complete(len(all), err)
		}},
		raw: []func(context.Context) error{func(ctx context.Context) error {
			names, _, err := c.Children(ctx, dir)
			for _, name := range names {
				if _, _, err = c.Get(ctx, dir+"/"+name); err != nil {
					return err
				}
			}
			return complete(len(names), err)
		}},
		floor: []func(context.Context) error{func(context.Context) error {
			names, _, err := conn.Children(dir)
			for _, name := range names {
				if _, _, err = conn.Get(dir + "/" + name); err != nil {
					return err
				}
			}
			return complete(len(names), err)
		}},
	}
}
