package discovery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is the reference for a directory: what has been said of each node, and nothing that is
// kept from one event to the next.
type world struct {
	hold time.Duration
	said []said
}

type said struct {
	at    time.Time
	event event
}

// shows is what a snapshot has to have now, as text.
func (w *world) shows(now time.Time) string {
	nodes := map[string][]said{}
	for _, s := range w.said {
		nodes[s.event.node] = append(nodes[s.event.node], s)
	}
	var instances, disabled, skipped []string
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		all := nodes[node]
		last := all[len(all)-1].event
		switch {
		case last.err != nil:
			skipped = append(skipped, node+"!"+last.err.Error())
		case last.instance != nil && last.instance.Disabled:
			disabled = append(disabled, node+"="+last.instance.Address)
		case last.instance != nil:
			instances = append(instances, node+"="+last.instance.Address)
		default:
			// Since when is it gone, and what was it before?
			first := len(all) - 1
			for first > 0 && all[first-1].event.instance == nil && all[first-1].event.err == nil {
				first--
			}
			if first == 0 {
				continue
			}
			was := all[first-1].event
			if was.instance != nil && !was.instance.Disabled && now.Before(all[first].at.Add(w.hold)) {
				instances = append(instances, node+"="+was.instance.Address)
			}
		}
	}
	return strings.Join([]string{strings.Join(instances, " "), strings.Join(disabled, " "), strings.Join(skipped, " ")}, "|")
}

// show is what a snapshot has, as text.
func show(s *Snapshot) string {
	var instances, disabled, skipped []string
	for _, i := range s.Instances {
		instances = append(instances, i.Node+"="+i.Address)
	}
	for _, i := range s.Disabled {
		disabled = append(disabled, i.Node+"="+i.Address)
	}
	for _, one := range s.Skipped {
		skipped = append(skipped, one.Node+"!"+one.Err.Error())
	}
	return strings.Join([]string{strings.Join(instances, " "), strings.Join(disabled, " "), strings.Join(skipped, " ")}, "|")
}

// TestExploreDirectory plays every short sequence of events, with and without hold. After each the
// snapshot is what the reference says. Whether it differs is told, an older snapshot never changes, and
// the timer is set to the first held instance that must go.
func TestExploreDirectory(t *testing.T) {
	t.Parallel()
	const depth = 5
	bad := errors.New("bad")
	one := func(node, address string, disabled bool) event {
		return event{node: node, instance: &ServiceInstance{Node: node, Address: address, Disabled: disabled, Raw: []byte(address)}}
	}
	moves := []struct {
		name   string
		events []event
		wait   time.Duration
	}{
		{name: "a is at 1", events: []event{one("a", "1", false)}},
		{name: "a is at 2", events: []event{one("a", "2", false)}},
		{name: "a is disabled", events: []event{one("a", "1", true)}},
		{name: "a is bad", events: []event{{node: "a", err: bad}}},
		{name: "a is gone", events: []event{{node: "a"}}},
		{name: "b and a are at 3", events: []event{one("b", "3", false), one("a", "3", false)}},
		{name: "b is gone", events: []event{{node: "b"}}},
		{name: "b and a swap", events: []event{one("b", "3", false), {node: "a"}}},
		{name: "half of hold", wait: 50 * time.Millisecond},
		{name: "hold", wait: 100 * time.Millisecond},
	}
	played := 0
	for _, hold := range []time.Duration{0, 100 * time.Millisecond} {
		var play func(sequence []int)
		play = func(sequence []int) {
			d, w := directory{hold: hold}, world{hold: hold}
			now := time.Unix(1000, 0)
			var before Snapshot
			for step, at := range sequence {
				m := moves[at]
				before = d.now
				was := show(&before)
				now = now.Add(m.wait)
				var differs bool
				if m.wait > 0 {
					differs = d.expire(now)
				} else {
					for _, e := range m.events {
						w.said = append(w.said, said{now, e})
					}
					differs = d.nodes(now, int64(step+1), m.events)
				}
				if step < len(sequence)-1 {
					continue // was looked at before
				}
				played++
				fail := func(format string, args ...any) {
					var names []string
					for _, at := range sequence {
						names = append(names, moves[at].name)
					}
					t.Fatalf("hold %v, %s: %s", hold, strings.Join(names, ", "), fmt.Sprintf(format, args...))
				}
				is := show(&d.now)
				if want := w.shows(now); is != want {
					fail("%s, want %s", is, want)
				}
				if was != is && !differs {
					fail("nobody is told of %s after %s", is, was)
				}
				if was == is && differs && m.wait > 0 {
					fail("all are told that nothing has happened")
				}
				if show(&before) != was {
					fail("the snapshot %s has become %s", was, show(&before))
				}
				next, waits := d.next()
				if waits != (len(d.held) > 0) || waits && (!next.After(now) || w.shows(next) == is || w.shows(next.Add(-1)) != is) {
					fail("the timer is set to %v: %v", next.Sub(now), waits)
				}
			}
			if len(sequence) < depth {
				for at := range moves {
					play(append(slices.Clip(sequence), at))
				}
			}
		}
		play(nil)
	}
	if played != 2*(10+100+1000+10000+100000) {
		t.Errorf("%d sequences", played)
	}
}

// TestHeldComesBack: an instance that comes back within hold, with the same data, is no news.
func TestHeldComesBack(t *testing.T) {
	t.Parallel()
	d, now := directory{hold: time.Second}, time.Unix(1000, 0)
	made := func(raw string) event {
		return event{node: "a", instance: &ServiceInstance{Node: "a", Address: "1", Raw: []byte(raw)}}
	}
	if !d.nodes(now, 1, []event{made("x")}) || d.nodes(now, 2, []event{{node: "a"}}) || d.nodes(now, 3, []event{made("x")}) {
		t.Error("an instance that comes back is news")
	}
	if _, waits := d.next(); waits || d.now.Zxid != 3 || len(d.now.Instances) != 1 {
		t.Errorf("%+v", d.now)
	}
	if d.nodes(now, 4, []event{{node: "a"}}) || !d.nodes(now, 5, []event{made("y")}) {
		t.Error("an instance that comes back with other data is no news")
	}
	other := directory{hold: time.Second} // of a codec without Raw
	if !other.nodes(now, 1, []event{made("")}) || other.nodes(now, 2, []event{{node: "a"}}) || !other.nodes(now, 3, []event{made("")}) {
		t.Error("an instance of which nothing is known comes back, and is no news")
	}
	if d.state(true, now, nil) != true || d.state(true, now, errEmpty) || !d.state(false, now, nil) {
		t.Error("what is news of the state")
	}
}
