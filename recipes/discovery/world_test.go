package discovery_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// Other programs create, set and delete nodes of all kinds, and the folder, while directories start
// and end and the connection breaks. Every snapshot is what the servers had after its transaction.
// What the nodes say is worked out here by encoding/json alone.
func TestWorld(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, "DOCENT_DISCOVERY_SEEDS", 40) {
		bubble(t, discovery.CuratorMap(), func(r *rig) { r.world(rand.New(rand.NewPCG(seed, 31))) }, zktest.WithSeed(seed+1))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// era is the folder after a transaction.
type era struct {
	zxid int64
	text string
}

// folder is what a directory should say of the servers' nodes.
func (r *rig) folder() string {
	var callable, disabled, skipped []string
	for _, n := range r.Srv.Tree() {
		node, is := strings.CutPrefix(n.Path, base+"/orders/")
		if !is || strings.Contains(node, "/") {
			continue
		}
		var v struct {
			Address *string
			Port    any
			Enabled *bool
			Payload json.RawMessage
		}
		port := 0
		err := json.Unmarshal(n.Data, &v)
		switch p := v.Port.(type) {
		case float64:
			port = int(p)
		case string:
			_, _ = fmt.Sscan(p, &port)
		}
		var all map[string]any
		object := len(v.Payload) == 0 || string(v.Payload) == "null" || json.Unmarshal(v.Payload, &all) == nil
		switch {
		case err != nil || v.Address == nil || *v.Address == "" || strings.ContainsAny(*v.Address, " /") || port < 1 || port > 65535 || !object:
			skipped = append(skipped, node+" skipped")
		case v.Enabled != nil && !*v.Enabled:
			disabled = append(disabled, node+" disabled")
		case strings.Contains(*v.Address, ":"):
			callable = append(callable, fmt.Sprintf("%s=[%s]:%d", node, *v.Address, port))
		default:
			callable = append(callable, fmt.Sprintf("%s=%s:%d", node, *v.Address, port))
		}
	}
	for _, all := range [][]string{callable, disabled, skipped} {
		slices.Sort(all)
	}
	return strings.Join(slices.Concat(callable, disabled, skipped), " ")
}

func (r *rig) world(random *rand.Rand) {
	var mu sync.Mutex
	eras := []era{{0, ""}}
	at := func(zxid int64) string {
		mu.Lock()
		defer mu.Unlock()
		i, _ := slices.BinarySearchFunc(eras, zxid+1, func(e era, zxid int64) int { return int(e.zxid - zxid) })
		return eras[i-1].text
	}
	data := func() string {
		addresses := []string{"10.0.0.7", "h.example", "::1", "", "a b", "a/b", "ümlaut"}
		ports := []string{"80", `"81"`, "0", "-1", "65535", "65536", `""`, "null", `"x"`}
		payloads := []string{"null", `{"@class":"X","zone":"a","weight":99999999999}`, `"text"`, "[1]", "{}"}
		switch random.IntN(8) {
		case 0:
			return []string{"", "{", "[]", "null", "\x00", "{} {}"}[random.IntN(6)]
		case 1:
			return fmt.Sprintf(`{"address":%q,"port":%s,"payload":%s,"enabled":false}`, addresses[random.IntN(7)], ports[random.IntN(9)], payloads[random.IntN(5)])
		case 2:
			return fmt.Sprintf(`{"address":%q,"port":%s,"payload":%s,"new":{"a":[1,{"b":"}"}]}}`, addresses[random.IntN(7)], ports[random.IntN(9)], payloads[random.IntN(5)])
		default:
			return fmt.Sprintf(`{"name":"orders","address":"10.0.0.%d","port":%d}`, random.IntN(9), 1+random.IntN(9))
		}
	}
	write := func() {
		mu.Lock() // so that no reader asks before it is noted
		defer mu.Unlock()
		path := fmt.Sprintf("%s/orders/%c", base, 'a'+rune(random.IntN(5)))
		_, there := r.Srv.Node(path)
		switch k := random.IntN(12); {
		case k == 0:
			for _, child := range r.Srv.Children(base + "/orders") {
				_ = r.Srv.Delete(base + "/orders/" + child)
				eras = append(eras, era{r.Srv.Zxid(), r.folder()})
			}
			_ = r.Srv.Delete(base + "/orders") // it may be gone
		case there && k < 5:
			r.Check(r.Srv.Delete(path))
		case there && k < 7: // a Java client that reconnects
			n, _ := r.Srv.Node(path)
			r.Check(r.Srv.Delete(path))
			eras = append(eras, era{r.Srv.Zxid(), r.folder()})
			r.Check(r.Srv.Create(path, n.Data))
		default:
			r.set(string(path[len(path)-1]), data())
		}
		eras = append(eras, era{r.Srv.Zxid(), r.folder()})
	}
	caller := r.Srv.Client("caller")
	var readers sync.WaitGroup
	var open []*discovery.ServiceCache
	for range 60 {
		switch k := random.IntN(14); k {
		case 0, 1:
			opts := []discovery.CacheOption{nil, discovery.WithLazyStart()}[random.IntN(2)]
			s, err := r.other.Cache("orders", opts)
			r.Check(err)
			ctx := r.Within(time.Duration(random.IntN(60)) * time.Second)
			readers.Go(func() {
				if err := s.Start(ctx); err != nil {
					s.Close()
					return
				}
				last := int64(0)
				for now, err := range s.Changes(r.Ctx) {
					if err != nil {
						return
					}
					plain := *now
					plain.Stale = false
					if got, want := text(&plain), at(now.Zxid); got != want {
						r.Errorf("zxid %d: %q, want %q", now.Zxid, got, want)
					}
					if now.Zxid < last || now.Zxid == 0 {
						r.Errorf("zxid %d after %d", now.Zxid, last)
					}
					last = now.Zxid
				}
			})
			open = append(open, s)
		case 2:
			if len(open) > 0 {
				open[0].Close()
				open = open[1:]
			}
		case 3:
			caller.Cut()
		case 4:
			caller.ExpireSession()
		case 5:
			caller.Partition()
		case 6:
			r.Srv.Stop()
			time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
			r.Srv.Resume()
		case 7:
			caller.Heal()
		default:
			for range 1 + random.IntN(4) {
				write()
			}
		}
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	caller.Heal()
	time.Sleep(3 * testrig.SessionTimeout)
	for _, s := range open {
		if now := s.Snapshot(); text(now) != at(r.Srv.Zxid()) && !strings.Contains(fmt.Sprint(now.Err), "closed") && now.Zxid > 0 {
			r.Errorf("at the end %q, want %q (%v)", text(now), at(r.Srv.Zxid()), now.Err)
		}
		s.Close()
	}
	readers.Wait()
	testrig.WantNoGoroutine(r.T, ourFrames)
	time.Sleep(10 * time.Second)
	r.WantNoWatch()
}
