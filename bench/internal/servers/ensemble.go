package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"time"
)

// Family is a kind of server.
type Family string

// The families.
const (
	ZooKeeper Family = "zookeeper"
	Etcd      Family = "etcd"
	Redis     Family = "redis"
)

// Counters is what the servers of an ensemble have counted since they began.
type Counters struct {
	Requests float64
	Events   float64 // notifications of watches
}

// Ensemble is the running servers of one family.
type Ensemble struct {
	Addrs   []string // host:port, one for each, the leader's last
	Version string

	processes []*Process
	count     func(ctx context.Context, addr string) (Counters, error)
}

// Stop kills the servers.
func (e *Ensemble) Stop() {
	for _, p := range e.processes {
		p.Kill()
	}
}

// CPU is the processor time that all servers have used so far.
func (e *Ensemble) CPU() (time.Duration, error) {
	var all time.Duration
	for _, p := range e.processes {
		used, err := p.CPU()
		if err != nil {
			return 0, err
		}
		all += used
	}
	return all, nil
}

// Counters sums what the servers have counted.
func (e *Ensemble) Counters(ctx context.Context) (Counters, error) {
	var all Counters
	for _, addr := range e.Addrs {
		c, err := e.count(ctx, addr)
		if err != nil {
			return all, err
		}
		all.Requests += c.Requests
		all.Events += c.Events
	}
	return all, nil
}

// leaderLast moves the address of the leader to the end.
func (e *Ensemble) leaderLast(leads func(addr string) (bool, error)) error {
	for i, addr := range e.Addrs {
		leader, err := leads(addr)
		if err != nil {
			return err
		}
		if leader {
			e.Addrs = append(slices.Delete(e.Addrs, i, i+1), addr)
			break
		}
	}
	return nil
}

// run starts one server.
func (e *Ensemble) run(dir, name, program string, args ...string) error {
	p, err := StartProcess(exec.Command(program, args...), dir, name)
	if err != nil {
		return err
	}
	p.Watch()
	e.processes = append(e.processes, p)
	return nil
}

// missing says which package of Debian's a program or file is in.
func missing(what string, err error, packages string) error {
	return fmt.Errorf("%s is missing (%w). Run: apt-get install --no-install-recommends %s", what, err, packages)
}

// ports finds free ports of the loopback.
func ports(ctx context.Context, n int) ([]int, error) {
	var (
		found     []int
		listeners []net.Listener
		config    net.ListenConfig
	)
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	for range n {
		l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		addr, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, errors.New("not a TCP address")
		}
		found = append(found, addr.Port)
	}
	return found, nil
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
