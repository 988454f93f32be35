package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// serves makes a session, which is a write that a quorum takes, and one request. Any
// answer counts: a server that wants its clients to authenticate first serves too.
func (c *Container) serves(ctx context.Context) error {
	s, err := dialSession(ctx, c.Addr())
	if err != nil {
		return c.wrap("first session", err)
	}
	defer s.drop()
	if _, err = s.call(opExists, existsBody("/")); refused(err) {
		return nil
	}
	return c.wrap("first request", errors.Join(err, s.close()))
}

func refused(err error) bool {
	var c code
	return errors.As(err, &c)
}

// populate creates the chroot and the initial data, and waits until every member has them.
func (e *Ensemble) populate(ctx context.Context) error {
	set := e.run.set
	if set.chroot == "" && len(set.nodes) == 0 {
		return nil
	}
	again := false
	err := overCuts(ctx, func() error {
		err := e.create(ctx, again)
		again = true
		return err
	})
	if err != nil {
		return fmt.Errorf("create the initial nodes: %w", err)
	}
	return e.each(func(c *Container) error {
		return c.wrap("sync", overCuts(ctx, func() error { return c.sync(ctx) }))
	})
}

// overCuts repeats f when its connection breaks, as it does when the members elect another leader.
// What the server refuses stays refused.
func overCuts(ctx context.Context, f func() error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := f()
		if err == nil || refused(err) || errors.As(err, new(hopeless)) || ctx.Err() != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// sync returns when the server has what was written before.
func (c *Container) sync(ctx context.Context) error {
	s, err := dialSession(ctx, c.Addr())
	if err != nil {
		return err
	}
	defer s.drop()
	_, err = s.call(opSync, appendString(nil, "/"))
	return errors.Join(err, s.close())
}

// largeNode is how much data makes a closed connection the data's fault.
const largeNode = 1 << 19

// create creates the nodes on the first member, or again what an attempt has left out.
func (e *Ensemble) create(ctx context.Context, again bool) error {
	set := e.run.set
	s, err := dialSession(ctx, e.members[0].Addr())
	if err != nil {
		return err
	}
	defer s.drop()
	if err := s.authenticate(set); err != nil {
		return fmt.Errorf("become superuser: %w", err)
	}
	nodes := maps.Clone(set.nodes)
	if _, ok := nodes[set.chroot]; set.chroot != "" && !ok {
		nodes[set.chroot] = nil
	}
	for _, path := range slices.Sorted(maps.Keys(nodes)) { // parents sort before their children
		for _, parent := range ancestors(path) {
			if _, err := s.call(opCreate, createBody(parent, nil)); err != nil && !errors.Is(err, code(errNodeExists)) {
				return fmt.Errorf("%s: %w", parent, err)
			}
		}
		switch _, err := s.call(opCreate, createBody(path, nodes[path])); {
		case again && errors.Is(err, code(errNodeExists)):
		case err != nil && !refused(err) && ctx.Err() == nil && len(nodes[path]) > largeNode:
			return hopeless{fmt.Errorf("%s: the server does not take its %d bytes; see jute.maxbuffer: %w", path, len(nodes[path]), err)}
		case err != nil:
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return s.close()
}

// ancestors are the nodes above path, without the root, from above.
func ancestors(path string) []string {
	var all []string
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			all = append(all, path[:i])
		}
	}
	return all
}
