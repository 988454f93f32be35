package discovery_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// many is how many instances of one service the benchmarks and the test of memory have.
const many = 10_000

// crowd starts a server with a service of many instances, as Spring writes them.
func crowd(tb testing.TB) (context.Context, *zktest.Server, *discovery.ServiceDiscovery) {
	tb.Helper()
	srv := zktest.NewServer(tb, zktest.WithLogSize(10))
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Minute)
	tb.Cleanup(cancel)
	testrig.Check(tb, srv.Create("/services", nil))
	testrig.Check(tb, srv.Create("/services/orders", []byte{}))
	for n := range many {
		node, data := spring(tb, n, 8080)
		testrig.Check(tb, srv.Create("/services/orders/"+node, data))
	}
	c := testrig.Connect(ctx, tb, "zk:2181", srv.Client("caller").DialContext)
	d, err := discovery.New(c, "", discovery.SpringCloud())
	testrig.Check(tb, err)
	return ctx, srv, d
}

func spring(tb testing.TB, n, port int) (node string, data []byte) {
	tb.Helper()
	i := discovery.ServiceInstance{
		Service: "orders", ID: fmt.Sprintf("226d57cf-96c7-4044-9ff0-%012d", n), Address: fmt.Sprintf("10.0.%d.%d", n/256, n%256), Port: port,
		Zone: fmt.Sprint("zone-", n%3), Registered: time.UnixMilli(1795486757569),
	}
	now, err := discovery.SpringCloud().Encode(&i)
	testrig.Check(tb, err)
	return now.Node, now.Data
}

// BenchmarkFirstList is Start of a directory of 10,000 instances.
func BenchmarkFirstList(b *testing.B) {
	ctx, _, d := crowd(b)
	for b.Loop() {
		s, err := d.Cache("orders")
		testrig.Check(b, err)
		testrig.Check(b, s.Start(ctx))
		if n := len(s.Snapshot().Instances); n != many {
			b.Fatalf("%d instances", n)
		}
		s.Close()
	}
}

// BenchmarkOneChange is from the write of one of 10,000 instances to the snapshot that has it.
func BenchmarkOneChange(b *testing.B) {
	ctx, srv, d := crowd(b)
	s, err := d.Cache("orders")
	testrig.Check(b, err)
	testrig.Check(b, s.Start(ctx))
	defer s.Close()
	srv.ResetCounts()
	changes := 0
	for b.Loop() {
		changes++
		node, data := spring(b, changes%many, 1+changes%60000)
		before := s.Snapshot()
		testrig.Check(b, srv.SetData("/services/orders/"+node, data))
		for now := range s.Changes(ctx) {
			if now != before {
				break
			}
		}
	}
	b.ReportMetric(float64(srv.Count(zktest.OpMultiRead)+srv.Count(zktest.OpGetData))/float64(changes), "reads/op")
}

// BenchmarkSnapshot is what a call costs to look.
func BenchmarkSnapshot(b *testing.B) {
	ctx, _, d := crowd(b)
	s, err := d.Cache("orders")
	testrig.Check(b, err)
	testrig.Check(b, s.Start(ctx))
	defer s.Close()
	for b.Loop() {
		if len(s.Snapshot().Instances) != many {
			b.Fatal("an instance is missing")
		}
	}
}
