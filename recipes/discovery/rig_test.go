package discovery_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// rig is a server in a bubble of virtual time, with a client of a service and one of a caller.
type rig struct {
	*testrig.Rig
	service, caller *client.Client // with links of these names
	own, other      *discovery.ServiceDiscovery
}

func bubble(t *testing.T, codec discovery.Codec, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(tr *testrig.Rig) {
		r := &rig{Rig: tr, service: tr.Connect("service"), caller: tr.Connect("caller")}
		r.own, r.other = r.services(r.service, codec), r.services(r.caller, codec)
		f(r)
	}, opts...)
}

const base = "/services"

func (r *rig) services(c *client.Client, codec discovery.Codec) *discovery.ServiceDiscovery {
	r.Helper()
	d, err := discovery.New(c, base, codec)
	r.Check(err)
	return d
}

// at is an instance of orders.
func at(address string, port int) discovery.ServiceInstance {
	return discovery.ServiceInstance{Service: "orders", ID: "a", Address: address, Port: port}
}

// register registers an instance of orders.
func (r *rig) register(i discovery.ServiceInstance, opts ...nodes.Option) *discovery.Registration {
	r.Helper()
	g, err := r.own.Register(r.Within(time.Minute), i, opts...)
	r.Check(err)
	return g
}

// cache starts a directory of orders.
func (r *rig) cache(opts ...discovery.CacheOption) *discovery.ServiceCache {
	r.Helper()
	s, err := r.other.Cache("orders", opts...)
	r.Check(err)
	r.Cleanup(s.Close)
	r.Check(s.Start(r.Within(time.Minute)))
	return s
}

// text is what a snapshot has.
func text(s *discovery.Snapshot) string {
	var all []string
	for _, i := range s.Instances {
		all = append(all, i.Node+"="+i.HostPort())
	}
	for _, i := range s.Disabled {
		all = append(all, i.Node+" disabled")
	}
	for _, one := range s.Skipped {
		all = append(all, one.Node+" skipped")
	}
	if s.Stale {
		all = append(all, "stale")
	}
	return strings.Join(all, " ")
}

// want checks what the directory has once it has seen everything.
func (r *rig) want(s *discovery.ServiceCache, want string) *discovery.Snapshot {
	r.Helper()
	now, err := s.Wait(r.Within(time.Minute), r.Srv.Zxid())
	r.Check(err)
	if got := text(now); got != want {
		r.Errorf("the directory has %q, want %q", got, want)
	}
	if now.Zxid < r.Srv.Zxid() {
		r.Errorf("the snapshot has zxid %d, the servers %d", now.Zxid, r.Srv.Zxid())
	}
	return now
}

// heard is what a reader of Changes has seen, as text.
type heard struct {
	mu  sync.Mutex
	all []string
	err error
}

// text is what the reader has seen, once it has seen everything.
func (h *heard) text() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.all, ", ")
}

// hear reads the changes of a directory until the end of the test.
func (r *rig) hear(s *discovery.ServiceCache) *heard {
	h := &heard{}
	go func() { // ends with r.Ctx, or with the directory
		for now, err := range s.Changes(r.Ctx) {
			h.mu.Lock()
			h.all, h.err = append(h.all, text(now)), err
			h.mu.Unlock()
		}
	}()
	return h
}

// set makes the data of a node what it is, as an operator does.
func (r *rig) set(node, data string) {
	r.Helper()
	path := base + "/orders/" + node
	if _, there := r.Srv.Node(path); there {
		r.Check(r.Srv.SetData(path, []byte(data)))
		return
	}
	if _, there := r.Srv.Node(base + "/orders"); !there {
		if _, there := r.Srv.Node(base); !there {
			r.Check(r.Srv.Create(base, nil))
		}
		r.Check(r.Srv.Create(base+"/orders", []byte{}))
	}
	r.Check(r.Srv.Create(path, []byte(data)))
}

// vacancy watches the commits until the end of the test. It returns a function that reports for
// how long there was no node of orders since.
func (r *rig) vacancy() func() time.Duration {
	var mu sync.Mutex
	standing, since, sum := len(r.Srv.Children(base+"/orders")), time.Now(), time.Duration(0)
	r.Srv.OnCommit(func(c zktest.Commit) {
		mu.Lock()
		defer mu.Unlock()
		was := standing
		for _, p := range c.Created {
			if strings.HasPrefix(p, base+"/orders/") {
				standing++
			}
		}
		for _, p := range c.Deleted {
			if strings.HasPrefix(p, base+"/orders/") {
				standing--
			}
		}
		switch {
		case was > 0 && standing == 0:
			since = c.Time
		case was == 0 && standing > 0:
			sum += c.Time.Sub(since)
		}
	})
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return sum
	}
}

var ourFrames = regexp.MustCompile(`docent/recipes/(discovery|cache|nodes)\.`)

// wantNothingLeft checks that there is neither a goroutine nor a watch nor an instance.
func (r *rig) wantNothingLeft() {
	r.Helper()
	testrig.WantNoGoroutine(r.T, ourFrames)
	time.Sleep(10 * time.Second)
	r.WantNoWatch()
	r.WantNoChild(base + "/orders")
}

// zkACL lets nobody read.
func zkACL() []zk.ACL { return zk.WorldACL(zk.PermWrite | zk.PermDelete) }
