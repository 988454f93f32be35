package discovery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/nodes"
)

// Registration keeps an instance registered: it is a [nodes.PersistentNode] whose data a codec
// has written. All that is true of such a node is true of it. It comes back after a lost
// session, in one transaction if the old node still stands. It is made again if another client
// deletes it. It is never there without its data.
//
// It is safe for concurrent use.
type Registration struct {
	d          *ServiceDiscovery
	node       *nodes.PersistentNode
	name       string // of the node, without its number
	sequential bool

	mu       sync.Mutex // guards the rest; held to order updates, never across I/O
	instance ServiceInstance
}

// NewRegistration returns a registration that is not yet kept. It does no I/O. Without a time of
// registration the instance gets the present one.
//
// The options are those of the node. By default a node of another session at the path is left
// alone, and Start waits until it is gone: with an ID that a crashed process has had too, that
// is a session timeout. [nodes.TakeOver] replaces it at once. [nodes.WithLazyStart] is for a
// service that starts without its servers.
//
// The error matches [ErrNotCarried] if the codec has no place for a field, and [ErrUnusable] if
// nobody could call the instance.
func (d *ServiceDiscovery) NewRegistration(i ServiceInstance, opts ...nodes.Option) (*Registration, error) {
	folder, err := d.folder(i.Service)
	if err != nil {
		return nil, err
	}
	i = i.Clone()
	if i.Registered.IsZero() {
		i.Registered = time.Now()
	}
	now, err := d.encode(&i)
	if err != nil {
		return nil, fmt.Errorf("%w (register %s)", err, i.Service)
	}
	mode := nodes.Ephemeral
	switch {
	case i.Type == Static || i.Type == Permanent:
		mode = nodes.Persistent
		if now.Sequential {
			return nil, fmt.Errorf("%w: nodes of %s have a number, and those of type %v have none (register %s)", ErrNotCarried, d.codec.Name(), i.Type, i.Service)
		}
	case now.Sequential:
		mode = nodes.EphemeralSequential
	}
	node, err := nodes.NewPersistentNode(d.c, mode, folder+"/"+now.Node, now.Data, opts...)
	if err != nil {
		return nil, raised(err)
	}
	if !now.Sequential && node.Status().Path == "" {
		return nil, errors.New("discovery: a registration takes no WithProtection, which would change the name of its node")
	}
	return &Registration{d: d, node: node, name: now.Node, sequential: now.Sequential, instance: i}, nil
}

// Start begins to keep the instance, and returns as soon as its node stands. ctx bounds the start
// alone: from then on the instance is kept until Close or the end of its client. After an error
// nothing is kept, and Start may be called again. See [nodes.PersistentNode.Start] for what ends
// it early.
func (r *Registration) Start(ctx context.Context) error { return raised(r.node.Start(ctx)) }

// Instance is the instance as it was given last, with its ID.
func (r *Registration) Instance() ServiceInstance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance.Clone()
}

// Update replaces the instance in place, and waits until the node stands with that data. No
// reader sees a moment without the instance. Service, ID and Type stay as they are; the ID may be left
// empty, and so may the time of registration, which then stays. Begin with
// [Registration.Instance] to change a field.
//
// If the codec refuses the instance, nothing changes. After any other error the instance is kept,
// and is written as soon as that is possible: after the end of ctx, or while a server refuses it.
// Of updates at the same time the last to begin counts. Before Start Update only keeps the
// instance.
func (r *Registration) Update(ctx context.Context, i ServiceInstance) error {
	ctxerr.Require(ctx)
	i = i.Clone()
	return r.change(ctx, func(now *ServiceInstance) error {
		switch {
		case i.Service != now.Service && i.Service != "":
			return fmt.Errorf("discovery: update %s: the service %s is another; register it", now, i.Service)
		case i.ID != now.ID && i.ID != "":
			return fmt.Errorf("discovery: update %s: the ID %q is another; register it", now, i.ID)
		case i.Type != now.Type:
			return fmt.Errorf("discovery: update %s: the type %v is another; close the registration, and register again", now, i.Type)
		}
		i.Service, i.ID = now.Service, now.ID
		if i.Registered.IsZero() {
			i.Registered = now.Registered
		}
		*now = i
		return nil
	})
}

// Disable says that the instance wants no calls; it goes on to stand. The error matches
// [ErrNotCarried] if the codec cannot say that. Otherwise it is as that of
// [Registration.Update].
func (r *Registration) Disable(ctx context.Context) error { return r.enabled(ctx, false) }

// Enable undoes Disable.
func (r *Registration) Enable(ctx context.Context) error { return r.enabled(ctx, true) }

func (r *Registration) enabled(ctx context.Context, yes bool) error {
	ctxerr.Require(ctx)
	return r.change(ctx, func(now *ServiceInstance) error {
		now.Disabled = !yes
		return nil
	})
}

// change changes the instance, and waits until the node stands with it, or with a newer one.
func (r *Registration) change(ctx context.Context, edit func(*ServiceInstance) error) error {
	wait, err := r.keep(edit)
	if err != nil {
		return err
	}
	return raised(wait(ctx))
}

// keep changes the instance, and gives the node its data. It returns what waits for the node.
func (r *Registration) keep(edit func(*ServiceInstance) error) (wait func(context.Context) error, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.instance.Clone()
	if err := edit(&next); err != nil {
		return nil, err
	}
	now, err := r.d.encode(&next)
	if err != nil {
		return nil, fmt.Errorf("%w (update %s)", err, &r.instance)
	}
	if now.Node != r.name || now.Sequential != r.sequential {
		return nil, fmt.Errorf("discovery: update %s: the node would be %q, and it is %q; close the registration, and register again", &r.instance, now.Node, r.name)
	}
	if wait, err = r.node.SetLater(now.Data); err != nil {
		return nil, raised(err)
	}
	r.instance = next
	return wait, nil
}

// Wait waits until the instance stands as it was given last. It is for one that was lost, or that
// has started with [nodes.WithLazyStart]. See [nodes.PersistentNode.Wait] for the error.
func (r *Registration) Wait(ctx context.Context) error { return raised(r.node.Wait(ctx)) }

// Status is that of the node: whether it stands, where, and why not. See
// [nodes.PersistentNode.Status] for how old it may be.
func (r *Registration) Status() nodes.Status { return r.node.Status() }

// Changes yields the status at once, and then every newer one. See
// [nodes.PersistentNode.Changes] for when it ends.
func (r *Registration) Changes(ctx context.Context) iter.Seq[nodes.Status] {
	return r.node.Changes(ctx)
}

// Close is [Registration.CloseContext] with a limit of 5 s.
func (r *Registration) Close() error { return raised(r.node.Close()) }

// CloseContext removes the instance, whatever its type, and waits for the goroutine. If it
// returns nil, the node is gone from the servers, or was never there. A node of another session is left alone.
//
// It returns within ctx. The error says why the node could not be removed; the removal goes on
// then, until the client is closed or the session is over.
func (r *Registration) CloseContext(ctx context.Context) error {
	return raised(r.node.CloseContext(ctx))
}
