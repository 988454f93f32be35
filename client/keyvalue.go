package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/internal/wire"
)

// ChildData is a child of a node with its data, see [Client.ChildrenData].
type ChildData struct {
	Name string
	Data []byte
	Stat zk.Stat
}

// ChildrenData returns the children of a node with their data, in no order, and the stat
// of the node. It lists the children and then reads many of them by one request
// (ZooKeeper 3.6). On other servers it sends many requests in one write. Batches grow as
// long as the answer to one stays below a MiB, or half of [WithMaxReply].
//
// It is no picture of one moment. A child is in the result with data that it had after the
// list was made, so the data of two children may be of two moments. A child that was deleted
// since is left out, and one that was created since is missing. A caller for whom that
// matters follows the node with package recipes/cache.
//
// If a child cannot be read, for lack of rights or because its data is larger than
// [WithMaxReply], the call fails and the error names the child. After a lost connection the
// client begins again with the list.
func (o *ops) ChildrenData(ctx context.Context, path string) (all []ChildData, now *zk.Stat, err error) {
	err = o.do(ctx, "children data", path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		list := session.Ask(wire.OpGetChildren, full)
		if err := t.s.Call(ctx, list); err != nil {
			return err
		}
		now = stat(list)
		all, err = o.childrenData(ctx, t.s, full, list.Reply.Names)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return all, now, nil
}

// childrenData reads the children of the node at dir that have these names.
func (o *ops) childrenData(ctx context.Context, s *sessionState, dir string, names []string) ([]ChildData, error) {
	all := make([]ChildData, 0, len(names))
	size := batchSize{n: firstBatch, target: min(mostAnswer, o.core.cfg.maxReply/2)}
	for len(names) > 0 {
		full := make([]string, min(size.n, len(names)))
		for i := range full {
			full[i] = join(dir, names[i])
		}
		full = full[:o.core.cfg.checkable(full)]
		read, err := s.readData(ctx, full)
		if errors.Is(err, ErrReplyTooLarge) && len(full) > 1 {
			size.tooLarge(len(full))
			continue
		}
		if err != nil && len(full) > 1 {
			return nil, err
		}
		if err != nil {
			return nil, o.ofChild(full[0], err)
		}
		bytes := 0
		for i, r := range read {
			switch err := fate.OfCode(r.Code); {
			case err == nil && r.Stat == nil:
				return nil, fate.Unanswered(fmt.Errorf("%w: an answer without data to a read of data", wire.ErrProtocol))
			case err == nil:
				bytes += len(r.Data) + statBytes
				all = append(all, ChildData{Name: names[i], Data: r.Data, Stat: *r.Stat})
			case !errors.Is(err, ErrNoNode):
				return nil, o.ofChild(full[i], fate.Refusal(err))
			}
		}
		size.answered(len(full), bytes)
		names = names[len(full):]
	}
	return all, nil
}

// ofChild adds the child to the error of its read.
func (o *ops) ofChild(full string, err error) error {
	return &fate.TryError{Err: fmt.Errorf("%s: %w", o.stripped(full), err), Outcome: fate.Of(err)}
}

const (
	firstBatch = 16      // nodes; each may have a MiB
	mostBatch  = 1024    // nodes
	mostAnswer = 1 << 20 // bytes that the answers to a batch should not exceed
	statBytes  = 80      // of an answer, besides the data
)

// batchSize says how many nodes the next batch reads. It has no I/O:
//
//	event    | next n
//	answered | as many as fill target by what the batch had, at most twice n, at most mostBatch, at least 1
//	tooLarge | a quarter of the batch, at least 1
type batchSize struct{ n, target int }

func (b *batchSize) answered(n, bytes int) {
	next := min(2*max(n, b.n), mostBatch)
	if bytes > 0 {
		next = min(next, n*b.target/bytes)
	}
	b.n = max(next, 1)
}

func (b *batchSize) tooLarge(n int) { b.n = max(n/4, 1) }

// readData reads nodes by one request, or by many in one write where the servers lack that.
// Each result has a code of its own. The error is of none of several nodes.
func (s *sessionState) readData(ctx context.Context, full []string) ([]wire.Result, error) {
	switch err := s.Supports(ctx, session.MultiReads); {
	case errors.Is(err, ErrUnsupported):
		return s.readEach(ctx, full)
	case err != nil:
		return nil, err
	}
	x := &wire.Exchange{Request: wire.Request{Op: wire.OpMultiRead, Parts: make([]wire.Request, len(full))}}
	for i, path := range full {
		x.Request.Parts[i] = wire.Request{Op: wire.OpGetData, Path: path}
	}
	err := s.Refused(session.MultiReads, s.Call(ctx, x))
	switch {
	case errors.Is(err, ErrUnsupported):
		return s.readEach(ctx, full) // which waits for a connection: the server has closed this one
	case err != nil:
		return nil, err
	case len(x.Reply.Parts) != len(full):
		return nil, fate.Unanswered(fmt.Errorf("%w: %d answers to %d reads", wire.ErrProtocol, len(x.Reply.Parts), len(full)))
	}
	return x.Reply.Parts, nil
}

// readEach reads nodes by a request for each, all in one write.
func (s *sessionState) readEach(ctx context.Context, full []string) ([]wire.Result, error) {
	xs := make([]*wire.Exchange, len(full))
	for i, path := range full {
		xs[i] = session.Ask(wire.OpGetData, path)
	}
	ended := s.Do(ctx, xs...)
	read := make([]wire.Result, len(full))
	for i, x := range xs {
		if err := s.Outcome(ctx, x, ended); err != nil && !fate.Is(err, fate.Refused) {
			return nil, err
		}
		read[i] = wire.Result{Code: x.Reply.Code, Data: x.Reply.Data, Stat: &x.Reply.Stat}
	}
	return read, nil
}

// CreateOrSet makes a node, or sets the data of an existing node, whatever its
// version, as Curator's orSetData does. It returns the stat after that; for a node
// that it made, as [Client.CreateStat] does. Other clients may create or delete the
// node meanwhile.
//
// It sends the set first. So a node that exists costs one request, as with
// [Client.Set], and a node that is made costs one more than with [Client.Create].
//
// The options are for a node that is made. An existing node keeps its kind and its
// ACL. [Sequential] and [Protected] are refused, because they make a new name each
// time.
//
// With [Ephemeral] the node is this session's afterwards, or the call fails: an existing
// node of another session, or one that is not ephemeral, is left alone. The error matches
// [ErrNodeExists] and names the owner. A node of a session that this client has lost counts as another's until the servers
// have deleted it. Such a call looks first and costs two requests. If another session
// replaces the node between the two, its data may be overwritten. The error then matches
// [UnknownOutcome] as well. PersistentNode of package recipes/nodes keeps such a node
// through lost sessions.
//
// After an unknown outcome the client tries again. That may overwrite what another
// client wrote in between, as [Client.Set] with [AnyVersion] may. If the call fails
// with an error that matches [UnknownOutcome], the data may have been written. After
// any other error this call has written nothing.
func (o *ops) CreateOrSet(ctx context.Context, path string, data []byte, opts ...CreateOption) (now *zk.Stat, err error) {
	spec, err := o.spec(opts)
	if err == nil && (spec.sequential || spec.protected) {
		err = misused("CreateOrSet does not take Sequential or Protected")
	}
	if err != nil {
		return nil, o.invalid(ctx, createOrSetOp, path, err)
	}
	err = o.do(ctx, createOrSetOp, path, repeatable, func(ctx context.Context, t try) (err error) {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if f, takes := spec.needs(); takes {
			if err := t.s.Supports(ctx, f); err != nil {
				return err
			}
			defer func() { err = t.s.Refused(f, err) }()
		}
		if spec.ephemeral {
			now, err = o.ownEphemeral(ctx, t.s, full, spec, data)
			return err
		}
		for {
			x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetData, Path: full, Data: data, Version: AnyVersion}}
			if err = t.s.Call(ctx, x); !errors.Is(err, ErrNoNode) {
				now = stat(x)
				return err
			}
			now, err = o.create(ctx, t.s, full, spec, data)
			if !errors.Is(err, ErrNodeExists) { // else another client made it in between
				return err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return now, nil
}

// create makes the node at full, with parents if the options ask for them. It returns
// the stat of the node.
func (o *ops) create(ctx context.Context, s *sessionState, full string, spec createSpec, data []byte) (now *zk.Stat, err error) {
	dir, _ := split(full)
	spec = o.withNamespace(spec, dir)
	err = withParents(ctx, s, func() (*missingParent, error) {
		x, look := &wire.Exchange{Request: spec.request(full, data)}, session.Ask(wire.OpExists, full)
		err := s.Call(ctx, x, look)
		switch {
		case err == nil:
			now = spec.stat(s, x, look, data)
		case spec.parents != parentsMustExist && errors.Is(err, ErrNoNode):
			return &missingParent{o, dir, spec}, err
		}
		return nil, err
	})
	return now, err
}

// ownEphemeral makes the node at full an ephemeral node of s with that data.
func (o *ops) ownEphemeral(ctx context.Context, s *sessionState, full string, spec createSpec, data []byte) (*zk.Stat, error) {
	for {
		look := session.Ask(wire.OpExists, full)
		if err := s.Read(ctx, look); err != nil {
			return nil, unread("look at the node", err)
		}
		seen := stat(look)
		if seen == nil {
			now, err := o.create(ctx, s, full, spec, data)
			if errors.Is(err, ErrNodeExists) {
				continue // another client made it in between
			}
			return now, err
		}
		if seen.EphemeralOwner != s.ID() {
			return nil, fate.Refusal(notOwn(seen))
		}
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetData, Path: full, Data: data, Version: seen.Version}}
		switch err := s.Call(ctx, x); {
		case errors.Is(err, ErrNoNode), errors.Is(err, ErrBadVersion): // another client changed it in between
		case err != nil:
			return nil, err
		case x.Reply.Stat.EphemeralOwner != s.ID():
			return nil, fate.Unanswered(notOwn(&x.Reply.Stat))
		default:
			return stat(x), nil
		}
	}
}

// notOwn says whose the node is that is in the way of an ephemeral one.
func notOwn(seen *zk.Stat) error {
	if seen.EphemeralOwner == 0 {
		return fmt.Errorf("%w and is not ephemeral: delete it first, or leave out client.Ephemeral", ErrNodeExists)
	}
	return fmt.Errorf("%w and is an ephemeral node of session %s: wait until that session ends, or delete the node", ErrNodeExists, session.ID(seen.EphemeralOwner))
}

// DeleteAll deletes a node and everything below it, children first, whatever the
// versions are. A node that is deleted already counts as success, the one at path
// included, as with [os.RemoveAll].
//
// It is not a transaction: other clients see the nodes disappear one after the other.
// Nodes that other clients create below path meanwhile are deleted as well. A client
// that creates without end keeps the call going until ctx ends. Deletes leave in
// batches of up to 256. The children of a node are listed in one answer, see
// [WithMaxReply].
//
// After an unknown outcome the client lists and deletes again. If the call fails,
// some nodes may be deleted. The error matches [UnknownOutcome] if any node is
// deleted or may be, and it names the node that was refused. Another call goes on
// from there.
//
// "/" is refused. In a namespace, too, it would delete everything below: give the
// path of a node.
func (o *ops) DeleteAll(ctx context.Context, path string) error {
	begun := false // something was deleted
	ctxerr.Require(ctx)
	ctx, seen := o.core.cfg.observer.observe(ctx, deleteAllOp, path)
	err := o.perform(ctx, seen, deleteAllOp, path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		if path == "/" {
			return misused("that would delete everything: give the path of a node")
		}
		if err := deletable(full); err != nil {
			return err
		}
		d := deleteAll{s: t.s, ops: o}
		err = d.tree(ctx, full)
		begun = begun || d.begun
		return err
	})
	var op *OpError
	if begun && errors.As(err, &op) {
		op.Outcome = OutcomeUnknown
	}
	return seen.end(err)
}

const deleteAllOp = "delete all"

// deleteAll is one try of a [Client.DeleteAll].
type deleteAll struct {
	*ops
	s     *sessionState
	begun bool // a server has deleted something
}

// tree deletes the node at full and what is below it.
func (d *deleteAll) tree(ctx context.Context, full string) error {
	for {
		left, err := d.nodes(ctx, []string{full})
		if err != nil || len(left) == 0 {
			return err
		}
		if err := d.below(ctx, full); err != nil {
			return err
		}
	}
}

// below deletes the children of the node at full, as far as one list names them.
func (d *deleteAll) below(ctx context.Context, full string) error {
	list := session.Ask(wire.OpGetChildren, full)
	switch err := d.s.Call(ctx, list); {
	case errors.Is(err, ErrNoNode):
		return nil
	case err != nil:
		return unread("list "+d.stripped(full), err)
	}
	for batch := range slices.Chunk(list.Reply.Names, duties.AtOnce) {
		children := make([]string, len(batch))
		for i, name := range batch {
			children[i] = join(full, name)
		}
		left, err := d.nodes(ctx, children)
		if err != nil {
			return err
		}
		for _, child := range left {
			if err := d.below(ctx, child); err != nil {
				return err
			}
			if err := d.tree(ctx, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodes deletes nodes, all in one write. It returns the nodes that have children.
func (d *deleteAll) nodes(ctx context.Context, full []string) (left []string, err error) {
	xs := make([]*wire.Exchange, len(full))
	for i, node := range full {
		xs[i] = deletion(node, AnyVersion)
	}
	ended := d.s.Do(ctx, xs...)
	var failed error
	for i, node := range full {
		err := d.s.Outcome(ctx, xs[i], ended)
		switch {
		case err == nil:
			d.begun = true
		case errors.Is(err, ErrNoNode):
		case errors.Is(err, ErrNotEmpty):
			left = append(left, node)
		case failed == nil:
			failed = d.at(node, err)
		}
	}
	return left, failed
}

// at adds the node to the error of its deletion.
func (d *deleteAll) at(full string, err error) error {
	return &fate.TryError{Err: fmt.Errorf("%s: %w", d.stripped(full), err), Outcome: fate.Of(err)}
}

// unread is the error of a read, which changes nothing.
func unread(what string, err error) error {
	outcome := fate.Unchanged
	if fate.Is(err, fate.Refused) {
		outcome = fate.Refused
	}
	return &fate.TryError{Err: fmt.Errorf("%s: %w", what, err), Outcome: outcome}
}
