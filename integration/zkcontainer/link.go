package zkcontainer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Link is the network between one client and the servers: a proxy in this process before
// each member. It cuts and delays what passes, needs no privileges and no other container,
// and its addresses stay while the servers stop and start. Clients of other programs on
// this machine may use it too. Its methods are safe for concurrent use.
//
// Partition, PartitionRequests, PartitionReplies, Refuse, Cut and Delay take the members
// that they are about; without any they are about all. They panic when one is not behind the link.
type Link struct {
	run     *run
	members []*Container
	plain   []*front // before the members, in their order
	secure  []*front // before their ports for TLS, empty without [WithTLS]
	once    sync.Once
}

// NewLink is a link before all members.
func (e *Ensemble) NewLink(ctx context.Context) (*Link, error) { return newLink(ctx, e.run, e.members) }

// NewLink is a link before this server alone.
func (c *Container) NewLink(ctx context.Context) (*Link, error) {
	return newLink(ctx, c.run, []*Container{c})
}

// newLink listens on a port of 127.0.0.1 for each member. It is closed with the servers.
func newLink(ctx context.Context, r *run, members []*Container) (*Link, error) {
	l := &Link{run: r, members: slices.Clone(members)}
	for _, c := range members {
		for _, inside := range r.set.ports() {
			f, err := newFront(ctx, c.addr(inside))
			if err != nil {
				l.Close()
				return nil, fmt.Errorf("zkcontainer: link: %w", err)
			}
			if inside == clientPort {
				l.plain = append(l.plain, f)
			} else {
				l.secure = append(l.secure, f)
			}
		}
	}
	if !r.keep(l) {
		l.Close()
		return nil, fmt.Errorf("zkcontainer: link: %w", errTerminated)
	}
	return l, nil
}

// Servers returns the addresses of the proxies in the order of the members.
func (l *Link) Servers() []string { return addresses(l.plain) }

// ConnectionString is the addresses of the proxies as [Ensemble.ConnectionString] is those of the
// members.
func (l *Link) ConnectionString(context.Context) (string, error) {
	return strings.Join(l.Servers(), ",") + l.run.set.chroot, nil
}

// SecureServers returns the addresses of the proxies for TLS, none without [WithTLS].
func (l *Link) SecureServers() []string { return addresses(l.secure) }

func addresses(fronts []*front) []string {
	var all []string
	for _, f := range fronts {
		all = append(all, f.addr())
	}
	return all
}

// Partition lets nothing pass, both ways, until [Link.Heal]. Connections stay open and
// are silent; new ones are accepted and silent. What was held is delivered afterwards, as
// TCP would deliver it.
func (l *Link) Partition(members ...*Container) {
	l.each(members, func(f *front) { f.hold(true, true) })
}

// PartitionRequests holds only what the client sends.
func (l *Link) PartitionRequests(members ...*Container) {
	l.each(members, func(f *front) { f.hold(true, false) })
}

// PartitionReplies holds only what the servers send.
func (l *Link) PartitionReplies(members ...*Container) {
	l.each(members, func(f *front) { f.hold(false, true) })
}

// Refuse closes new connections at once, until [Link.Heal]. It leaves those that are open.
func (l *Link) Refuse(members ...*Container) {
	l.each(members, func(f *front) { f.setRefuse(true) })
}

// Cut closes the open connections. What was on its way is lost. New connections are
// accepted.
func (l *Link) Cut(members ...*Container) { l.each(members, (*front).cut) }

// Delay makes whatever passes from now on take d longer, in each direction; zero ends it.
func (l *Link) Delay(d time.Duration, members ...*Container) {
	l.each(members, func(f *front) { f.setDelay(d) })
}

// Heal ends partitions and refusals of all members. It leaves a delay.
func (l *Link) Heal() {
	l.each(nil, func(f *front) {
		f.setRefuse(false)
		f.hold(false, false)
	})
}

// Sessions returns the sessions on open connections. Those over TLS are not seen.
func (l *Link) Sessions() []Session {
	var all []Session
	for i, f := range l.plain {
		for _, s := range f.sessions() {
			s.member = l.members[i]
			all = append(all, s)
		}
	}
	return all
}

// ExpireSession ends the sessions on open connections, as if their timeouts had passed, and
// returns how many. The client hears of it when it next speaks to a server. See
// [Ensemble.ExpireSession].
func (l *Link) ExpireSession(ctx context.Context) (int, error) {
	all := l.Sessions()
	for i, s := range all {
		if err := s.member.ensemble.expire(ctx, s.member, s.ID, s.Password); err != nil {
			return i, err
		}
	}
	return len(all), nil
}

// Close ends the proxies and their connections. It may be repeated.
func (l *Link) Close() {
	l.once.Do(func() {
		for _, f := range slices.Concat(l.plain, l.secure) {
			f.close()
		}
	})
}

// each runs f for the proxies before these members, or all.
func (l *Link) each(members []*Container, f func(*front)) {
	for _, c := range members {
		if !slices.Contains(l.members, c) {
			panic("zkcontainer: a server that is not behind the link")
		}
	}
	for i, c := range l.members {
		if len(members) != 0 && !slices.Contains(members, c) {
			continue
		}
		f(l.plain[i])
		if i < len(l.secure) {
			f(l.secure[i])
		}
	}
}
