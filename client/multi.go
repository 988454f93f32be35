package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/internal/wire"
)

// Op is one part of a transaction; see [CreateOp], [SetOp], [DeleteOp] and
// [CheckOp].
type Op struct {
	name, path string
	in         *ops         // whose namespace path is in; nil: that of the transaction
	request    wire.Request // without the full path, and maybe without an ACL
	err        error
}

// In returns op with its path in the namespace of c; the path in the result is in it
// too. The client of the transaction must share its session with c. If it does not,
// or c is nil, the transaction fails before it is sent.
func (op Op) In(c *Client) Op {
	if c == nil {
		op.err = misused("%s %s is in the namespace of a nil *Client", op.name, op.path)
		return op
	}
	op.in = &c.ops
	return op
}

// CreateOp makes a node. In a transaction there are no containers, TTL nodes, missing
// parents or protection: they need another request, or more than one. A missing
// namespace is made before it, see [WithNamespace].
func CreateOp(path string, data []byte, opts ...CreateOption) Op {
	var spec createSpec
	for _, opt := range opts {
		if opt != nil {
			opt(&spec)
		}
	}
	op := Op{name: "create", path: path, request: spec.request("", data)}
	switch option := spec.single(); {
	case option != "":
		op.err = misused("create %s in a transaction: CreateOp does not take %s, only Ephemeral, Sequential and ACL", path, option)
	case spec.acl != nil && len(spec.acl) == 0:
		op.err = fate.Unsent(fmt.Errorf("create %s in a transaction: %w", path, errEmptyACL))
	}
	return op
}

// single returns the name of an option that is not possible in a transaction, if
// there is one.
func (spec *createSpec) single() string {
	switch {
	case spec.container:
		return "Container"
	case spec.hasTTL:
		return "TTL"
	case spec.protected:
		return "Protected"
	case spec.parentACL != nil:
		return "ParentACL"
	default:
		return string(spec.parents)
	}
}

// SetOp replaces the data of a node that has the given version.
func SetOp(path string, data []byte, version int32) Op {
	return Op{name: "set", path: path, request: wire.Request{Op: wire.OpSetData, Data: data, Version: version}}
}

// DeleteOp deletes a node that has the given version.
func DeleteOp(path string, version int32) Op {
	return Op{name: "delete", path: path, request: wire.Request{Op: wire.OpDelete, Version: version}}
}

// CheckOp makes the transaction fail unless the node exists with the given version.
func CheckOp(path string, version int32) Op {
	return Op{name: "check", path: path, request: wire.Request{Op: wire.OpCheck, Version: version}}
}

// OpResult is the result of one part of a transaction that was committed.
type OpResult struct {
	Path string   // of a created node
	Stat *zk.Stat // of a set node
}

// MultiError says which part of a transaction was refused. The transaction was not
// applied.
type MultiError struct {
	Index int    // of the part that failed, from 0
	Op    string // the kind of that part: "create", "check", ...
	Path  string
	Err   error
}

// Error names the part that failed and why.
func (e *MultiError) Error() string {
	remedy := ""
	if e.Op == "create" && errors.Is(e.Err, ErrNoNode) {
		remedy = " (the parent: make it first, a transaction makes none)"
	}
	return fmt.Sprintf("part %d (%s %s): %v%s", e.Index, e.Op, e.Path, e.Err, remedy)
}

// Unwrap returns why the part failed.
func (e *MultiError) Unwrap() error { return e.Err }

// Multi applies all parts in one transaction or none. A refused transaction fails
// with a [*MultiError]. After an unknown outcome the client does not repeat it: the
// error matches [UnknownOutcome].
func (o *ops) Multi(ctx context.Context, parts ...Op) ([]OpResult, error) {
	path := "(empty)"
	if len(parts) > 0 {
		path = parts[0].path
	}
	var results []OpResult
	err := o.do(ctx, "multi", path, once, func(ctx context.Context, t try) error {
		reqs, err := o.requests(parts)
		if err != nil {
			return err
		}
		x, err := o.transact(ctx, t.s, parts, reqs)
		if err != nil {
			return err
		}
		results = make([]OpResult, len(parts))
		for i, r := range x.Reply.Parts {
			results[i].Stat = r.Stat
			if r.Path != "" {
				results[i].Path = o.of(parts[i]).stripped(r.Path)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// transact sends the transaction. If a namespace is missing, it makes that and sends
// the transaction again: the first has changed nothing.
func (o *ops) transact(ctx context.Context, s *sessionState, parts []Op, reqs []wire.Request) (x *wire.Exchange, err error) {
	err = withParents(ctx, s, func() (*missingParent, error) {
		x = transaction(reqs)
		err := s.transact(ctx, parts, x)
		var refused *MultiError
		if !errors.As(err, &refused) || refused.Op != "create" || !errors.Is(refused.Err, ErrNoNode) {
			return nil, err
		}
		in := o.of(parts[refused.Index])
		dir, _ := split(reqs[refused.Index].Path)
		if !in.inNamespace(dir) {
			return nil, err
		}
		return &missingParent{in, dir, createSpec{parents: parentsContainers, parentACL: o.core.cfg.defaultACL}}, err
	})
	return x, err
}

func transaction(reqs []wire.Request) *wire.Exchange {
	return &wire.Exchange{Request: wire.Request{Op: wire.OpMulti, Parts: reqs}}
}

// transact is call for xs, of which the first is a transaction of parts. The first
// part whose code gives a reason was refused: the parts behind it say that they were
// not executed.
func (s *sessionState) transact(ctx context.Context, parts []Op, xs ...*wire.Exchange) error {
	if err := s.Call(ctx, xs...); err != nil {
		return err
	}
	x := xs[0]
	if got := len(x.Reply.Parts); got != len(parts) {
		return fate.Unanswered(fmt.Errorf("%w: %d results of a transaction of %d parts", wire.ErrProtocol, got, len(parts)))
	}
	refused := -1
	for i, r := range x.Reply.Parts {
		if r.Code == 0 {
			continue
		}
		if refused = i; Code(r.Code) != fate.RuntimeInconsistency {
			break
		}
	}
	if refused < 0 {
		return nil
	}
	p := parts[refused]
	return fate.Refusal(&MultiError{Index: refused, Op: p.name, Path: p.path, Err: fate.OfCode(x.Reply.Parts[refused].Code)})
}

// of returns the client whose namespace the path of p is in.
func (o *ops) of(p Op) *ops {
	if p.in == nil {
		return o
	}
	return p.in
}

// requests are parts as the server wants them.
func (o *ops) requests(parts []Op) ([]wire.Request, error) {
	reqs := make([]wire.Request, len(parts))
	for i, p := range parts {
		if p.request.Op == 0 {
			p.err = misused("part %d is an empty Op; use CreateOp, SetOp, DeleteOp or CheckOp", i)
		}
		if p.err != nil {
			return nil, p.err
		}
		in := o.of(p)
		if in.core != o.core {
			return nil, misused("part %d (%s %s) is in the namespace of a client with another session", i, p.name, p.path)
		}
		full, err := in.full(p.path)
		if err == nil && p.request.Op == wire.OpDelete {
			err = deletable(full)
		}
		if err != nil {
			return nil, err
		}
		reqs[i] = p.request
		reqs[i].Path = full
		if reqs[i].ACL == nil {
			reqs[i].ACL = o.core.cfg.defaultACL
		}
	}
	return reqs, nil
}
