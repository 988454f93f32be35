package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/zktest"
)

// instance is an instance of a program, with metrics and an address of its own.
type instance struct {
	name    string
	jobs    []job
	client  *client.Client
	link    *zktest.ClientLink
	address string
	web     *http.Server
}

// scene is several instances, and a server that gives them trouble.
type scene struct {
	server    *zktest.Server
	instances []*instance
	long      time.Duration
	refusal   *zktest.Rule // of deletes, while there is one
}

// open starts the server and the instances. The caller must close the scene, unless there
// is an error. Sessions time out after a thirtieth of the time, so that all trouble fits.
func open(ctx context.Context, long time.Duration) (_ *scene, err error) {
	server, err := zktest.Start(zktest.WithTick(long/1200), zktest.WithLatency(time.Millisecond, 6*time.Millisecond))
	if err != nil {
		return nil, err
	}
	s := &scene{server: server, long: long}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, role := range roles() {
		i := &instance{name: role.name, jobs: role.jobs, link: server.Client(role.name)}
		s.instances = append(s.instances, i)
		metrics := promdocent.New(promdocent.WithLockName(observe.FirstElement))
		registry := prometheus.NewPedanticRegistry()
		if err := registry.Register(metrics); err != nil {
			return nil, err
		}
		i.client, err = client.Connect(ctx, "zk1:2181", client.WithSessionTimeout(long/30), client.WithObserver(metrics.Observer()),
			client.WithDialer(i.link.DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, err
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		i.address = listener.Addr().String()
		i.web = &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: time.Second}
		go func() { _ = i.web.Serve(listener) }() // ends with the close of the scene
	}
	return s, nil
}

// close ends the instances and the server.
func (s *scene) close(ctx context.Context) error {
	var errs error
	for _, i := range s.instances {
		if i.client != nil {
			errs = errors.Join(errs, i.client.CloseContext(ctx))
		}
		if i.web != nil {
			errs = errors.Join(errs, i.web.Close())
		}
	}
	return errors.Join(errs, s.server.Close())
}

// targets are the addresses to scrape.
func (s *scene) targets() map[string]string {
	all := map[string]string{}
	for _, i := range s.instances {
		all[i.name] = i.address
	}
	return all
}

// event is some trouble. It begins after a part of the time that the scene takes.
type event struct {
	after float64
	what  string
	do    func(*scene, context.Context) error
}

// troubles are the events in their order.
func troubles() []event {
	return []event{
		{.15, "shop-2 loses its session", func(s *scene, _ context.Context) error {
			if s.instances[1].link.ExpireSession() == 0 {
				return errors.New("shop-2 has no session to expire")
			}
			return nil
		}},
		{.30, "the leader is cut off", (*scene).cutLeader},
		{.38, "its network is back", func(s *scene, _ context.Context) error {
			for _, r := range roles() {
				s.server.Client(r.name).Heal()
			}
			return nil
		}},
		{.50, "an operator deletes the node of a holder", (*scene).evict},
		{.60, "shop-1 may not delete the nodes of its permits", func(s *scene, _ context.Context) error {
			s.refusal = s.server.Fail(zktest.Match{Client: "shop-1", Op: zktest.OpDelete, PathPrefix: gate, Times: zktest.Always}, zktest.CodeNoAuth)
			return nil
		}},
		{.66, "it may again", func(s *scene, _ context.Context) error {
			s.refusal.Remove()
			return nil
		}},
		{.75, "the server fails twenty reads", func(s *scene, _ context.Context) error {
			s.server.Fail(zktest.Match{Op: zktest.OpGetData, Prob: .2, Times: 20}, zktest.CodeSessionMoved)
			return nil
		}},
		{.87, "all connections break", func(s *scene, _ context.Context) error {
			s.server.CutAll()
			return nil
		}},
	}
}

// events says what happens when.
func (s *scene) events() string {
	var all []string
	for _, e := range troubles() {
		all = append(all, clock(time.Duration(e.after*float64(s.long)))+" "+e.what)
	}
	return strings.Join(all, " · ")
}

// play has all instances work, and the troubles come, for the time of the scene. A failure
// of a worker is part of the scene.
func (s *scene) play(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.long)
	defer cancel()
	var workers sync.WaitGroup
	defer workers.Wait()
	for n, i := range s.instances {
		for m, job := range i.jobs {
			w := worker{i.client, s.long, rand.New(rand.NewPCG(uint64(n), uint64(m)))}
			workers.Go(func() { w.repeat(ctx, job) })
		}
	}
	begin := time.Now()
	for _, e := range troubles() {
		if !pause(ctx, time.Until(begin.Add(time.Duration(e.after*float64(s.long))))) {
			return ctx.Err()
		}
		if err := e.do(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", e.what, err)
		}
	}
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}

// cutLeader cuts off the instance that leads.
func (s *scene) cutLeader(ctx context.Context) error {
	return s.strike(ctx, election, func(node string) bool {
		for _, session := range s.server.Sessions() {
			if slices.Contains(session.Ephemerals, node) {
				s.server.Client(session.Client).Partition()
				return true
			}
		}
		return false
	})
}

// evict deletes the node of the holder.
func (s *scene) evict(ctx context.Context) error {
	return s.strike(ctx, orders, func(node string) bool { return s.server.Delete(node) == nil })
}

// strike calls hit with the node of the holder until it hits. A holder may release first.
func (s *scene) strike(ctx context.Context, lock string, hit func(node string) bool) error {
	for {
		if nodes := s.server.Children(lock); len(nodes) > 0 && hit(lock+"/"+first(nodes)) {
			return nil
		}
		if !pause(ctx, time.Millisecond) {
			return fmt.Errorf("no holder of %s came: %w", lock, ctx.Err())
		}
	}
}

// first is the node with the least number, which the last ten digits are.
func first(nodes []string) string {
	least := nodes[0]
	for _, n := range nodes {
		if n[len(n)-10:] < least[len(least)-10:] {
			least = n
		}
	}
	return least
}

// clock is a time since the begin of the picture, in minutes and seconds.
func clock(at time.Duration) string {
	whole := int(at.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", whole/60, whole%60)
}
