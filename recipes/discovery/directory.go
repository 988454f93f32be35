package discovery

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// directory decides what a [ServiceCache] publishes. It is a machine without I/O, clock,
// goroutine and context: events in, a new snapshot out, if readers can tell it from the one before.
// Each node is in one of the states absent, callable, disabled, skipped and held. Held is a
// callable instance whose node is gone, and may come back at any moment.
//
//	event                                  the node is then   in the snapshot
//	its data is an instance                callable           Instances
//	its data is a disabled instance        disabled           Disabled
//	its data is no instance                skipped            Skipped
//	it is gone, was callable, hold is set  held until then    Instances, as it was
//	it is gone, was held                   held               Instances, until the same time
//	it is gone, otherwise                  absent             nowhere
//	the time of a held one has come        absent             nowhere
//	an event of no node                    as it was          Stale, Since and Err are new
type directory struct {
	hold time.Duration
	now  Snapshot
	held map[string]time.Time // until when
}

// event is what has become of one node. Without an instance and an error it is gone.
type event struct {
	node     string
	instance *ServiceInstance
	err      error
}

// nodes takes the events of one transaction or more. It reports whether the snapshot differs.
func (d *directory) nodes(at time.Time, zxid int64, events []event) bool {
	d.now.Zxid = zxid
	changed := make(map[string]bool, len(events))
	var callable, disabled []*ServiceInstance
	var skipped []Skipped
	for _, e := range events {
		_, wasHeld := d.held[e.node]
		old, wasCallable := d.callable(e.node)
		switch {
		case e.instance == nil && e.err == nil && wasHeld:
			continue
		case e.instance == nil && e.err == nil && wasCallable && d.hold > 0:
			if d.held == nil {
				d.held = map[string]time.Time{}
			}
			d.held[e.node] = at.Add(d.hold)
			continue
		}
		delete(d.held, e.node)
		switch {
		case e.err != nil:
			skipped = append(skipped, Skipped{e.node, e.err})
		case e.instance == nil:
		case e.instance.Disabled:
			disabled = append(disabled, e.instance)
		case wasHeld && len(old.Raw) > 0 && bytes.Equal(old.Raw, e.instance.Raw):
			continue // it is back, and readers need not know
		default:
			callable = append(callable, e.instance)
		}
		changed[e.node] = true
	}
	if len(changed) == 0 {
		return false
	}
	d.now.Instances = replaced(d.now.Instances, nodeOf, changed, callable)
	d.now.Disabled = replaced(d.now.Disabled, nodeOf, changed, disabled)
	d.now.Skipped = replaced(d.now.Skipped, skippedNode, changed, skipped)
	return true
}

// state takes what is known of the connection. It reports whether the snapshot differs.
func (d *directory) state(stale bool, since time.Time, err error) bool {
	differs := d.now.Stale != stale
	d.now.Stale, d.now.Since, d.now.Err = stale, since, err
	return differs
}

// expire removes the held instances whose time has come. It reports whether there were any.
func (d *directory) expire(at time.Time) bool {
	gone := map[string]bool{}
	for node, until := range d.held {
		if !until.After(at) {
			gone[node] = true
			delete(d.held, node)
		}
	}
	if len(gone) == 0 {
		return false
	}
	d.now.Instances = replaced(d.now.Instances, nodeOf, gone, nil)
	return true
}

// next is when expire has something to do, and false if it has nothing.
func (d *directory) next() (first time.Time, waits bool) {
	for _, until := range d.held {
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	return first, !first.IsZero()
}

// callable is the instance of a node that is callable or held.
func (d *directory) callable(node string) (*ServiceInstance, bool) {
	at, is := slices.BinarySearchFunc(d.now.Instances, node, func(i *ServiceInstance, node string) int { return cmp.Compare(i.Node, node) })
	if !is {
		return nil, false
	}
	return d.now.Instances[at], true
}

func nodeOf(i *ServiceInstance) string { return i.Node }

func skippedNode(s Skipped) string { return s.Node }

// replaced is a sorted list without what has a name that is gone, and with what is new. It
// leaves the list as it is: snapshots share it.
func replaced[T any](list []T, name func(T) string, gone map[string]bool, added []T) []T {
	if len(added) == 0 && !slices.ContainsFunc(list, func(one T) bool { return gone[name(one)] }) {
		return list
	}
	slices.SortFunc(added, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	all := make([]T, 0, len(list)+len(added))
	for _, one := range list {
		if gone[name(one)] {
			continue
		}
		for len(added) > 0 && name(added[0]) < name(one) {
			all, added = append(all, added[0]), added[1:]
		}
		all = append(all, one)
	}
	return slices.Clip(append(all, added...))
}
