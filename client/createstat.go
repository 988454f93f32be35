package client

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/wire"
)

// CreateStat is [Client.Create] and returns the stat of the new node as well. Not
// every server knows ZooKeeper's create2, so the client reads the stat behind the
// create. Both leave in the same write, unless the server chooses the name.
//
// The stat may therefore be later than the create: it shows what other clients have
// written to the node since. Czxid is always that of the create. If no answer came to the
// read, or the node is deleted already, Ctime and Mtime are 0. The rest is as it was at
// the create.
func (o *ops) CreateStat(ctx context.Context, path string, data []byte, opts ...CreateOption) (string, *zk.Stat, error) {
	now := new(zk.Stat)
	made, err := o.createOne(ctx, path, data, now, opts)
	if err != nil {
		return "", nil, err
	}
	return made, now, nil
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
// ACL. [Ephemeral] is refused, because an existing node may belong to another
// session. [Sequential] and [Protected] are refused, because they make a new name
// each time.
//
// After an unknown outcome the client tries again. That may overwrite what another
// client wrote in between, as [Client.Set] with [AnyVersion] may. If the call fails
// with an error that matches [UnknownOutcome], the data may have been written. After
// any other error this call has written nothing.
func (o *ops) CreateOrSet(ctx context.Context, path string, data []byte, opts ...CreateOption) (now *zk.Stat, err error) {
	spec, err := o.spec(opts)
	if err == nil && (spec.ephemeral || spec.sequential || spec.protected) {
		err = misused("CreateOrSet does not take Ephemeral, Sequential or Protected")
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
			if err := t.s.supports(ctx, f); err != nil {
				return err
			}
			defer func() { err = t.s.refused(f, err) }()
		}
		for {
			x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetData, Path: full, Data: data, Version: AnyVersion}}
			if err = t.s.call(ctx, x); !errors.Is(err, ErrNoNode) {
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
		x, look := &wire.Exchange{Request: spec.request(full, data)}, asked(wire.OpExists, full)
		err := s.call(ctx, x, look)
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

// stat is the stat of the node that x has made. It is what look shows, or, without an
// answer to look, what follows from the create.
func (spec *createSpec) stat(s *sessionState, x, look *wire.Exchange, data []byte) *zk.Stat {
	if look.Answered() && look.Err() == nil {
		if seen := stat(look); seen != nil && seen.Czxid == x.Reply.Zxid {
			return seen
		}
	}
	made := &zk.Stat{Czxid: x.Reply.Zxid, Mzxid: x.Reply.Zxid, Pzxid: x.Reply.Zxid, DataLength: int32(len(data))} //nolint:gosec // a request is smaller
	if spec.ephemeral {
		made.EphemeralOwner = s.link.SessionID()
	}
	return made
}
