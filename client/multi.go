package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
)

// CreateOp makes a node, of any kind. In a transaction there are no missing parents and
// no protection: they need more than one request. A missing namespace is made before it,
// see [WithNamespace]. With [Container] or [TTL] the whole transaction needs servers that
// have such nodes, else it fails with [ErrUnsupported].
func CreateOp(path string, data []byte, opts ...CreateOption) Op {
	var spec createSpec
	for _, opt := range opts {
		if opt != nil {
			opt(&spec)
		}
	}
	op := Op{name: "create", path: path, request: spec.request("", data)}
	op.needs, op.takes = spec.needs()
	switch option := spec.single(); {
	case option != "":
		op.err = misused("create %s in a transaction: CreateOp does not take %s, only Ephemeral, Sequential, Container, TTL and ACL", path, option)
	case spec.kind() != nil:
		op.err = fate.Unsent(fmt.Errorf("create %s in a transaction: %w", path, spec.kind()))
	case spec.acl != nil && len(spec.acl) == 0:
		op.err = fate.Unsent(fmt.Errorf("create %s in a transaction: %w", path, errEmptyACL))
	}
	return op
}

// single returns the name of an option that is not possible in a transaction, if
// there is one.
func (spec *createSpec) single() string {
	switch {
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
	Stat *zk.Stat // of a set node, and of a created container or TTL node
	Zxid int64    // of the transaction, for the Wait of a cache
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
			results[i].Stat, results[i].Zxid = r.Stat, x.Reply.Zxid
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

// transact is Session.Call for xs, of which the first is a transaction of parts. The first
// part whose code gives a reason was refused: the parts behind it say that they were
// not executed.
func (s *sessionState) transact(ctx context.Context, parts []Op, xs ...*wire.Exchange) error {
	for i := range parts {
		if !parts[i].takes {
			continue
		}
		if err := s.Supports(ctx, parts[i].needs); err != nil {
			return err
		}
	}
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
	err := fate.OfCode(x.Reply.Parts[refused].Code)
	if p.takes {
		err = s.Refused(p.needs, err)
	}
	return fate.Refusal(&MultiError{Index: refused, Op: p.name, Path: p.path, Err: err})
}

// requests are parts as the server wants them.
func (o *ops) requests(parts []Op) ([]wire.Request, error) {
	reqs := make([]wire.Request, len(parts))
	for i, p := range parts {
		if p.request.Op == 0 {
			p.err = misused("part %d is empty; use a function such as CreateOp or GetOp", i)
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

// ReadOp is one part of a [Client.MultiRead]; see [GetOp] and [ChildrenOp].
type ReadOp struct{ op Op }

// In returns r with its path in the namespace of c, which shares its session with the client
// that reads.
func (r ReadOp) In(c *Client) ReadOp {
	r.op = r.op.In(c)
	return r
}

// GetOp reads the data and stat of a node.
func GetOp(path string) ReadOp {
	return ReadOp{Op{name: "get", path: path, request: wire.Request{Op: wire.OpGetData}}}
}

// ChildrenOp reads the names of a node's children.
func ChildrenOp(path string) ReadOp {
	return ReadOp{Op{name: "children", path: path, request: wire.Request{Op: wire.OpGetNames}}}
}

// ReadResult is the answer to one part of a [Client.MultiRead]. Each part fails alone.
type ReadResult struct {
	Data     []byte   // of a GetOp
	Stat     *zk.Stat // of a GetOp
	Children []string // of a ChildrenOp, in no order
	Err      error    // of this part: it matches ErrNoNode or ErrNoAuth
}

// MultiRead reads nodes by one request (ZooKeeper 3.6.0). The answers come in the order of
// the parts, and all are of one state of the tree: no write comes between them. The whole
// answer must fit into [WithMaxReply]. On other servers it fails with [ErrUnsupported].
func (o *ops) MultiRead(ctx context.Context, parts ...ReadOp) (results []ReadResult, err error) {
	path, plain := "(empty)", make([]Op, len(parts))
	for i, r := range parts {
		path, plain[i] = parts[0].op.path, r.op
	}
	err = o.do(ctx, "multi read", path, reads, func(ctx context.Context, t try) error {
		reqs, err := o.requests(plain)
		if err != nil {
			return err
		}
		x := &wire.Exchange{Request: wire.Request{Op: wire.OpMultiRead, Parts: reqs}}
		if err := o.ask(ctx, t.s, session.MultiReads, x); err != nil {
			return err
		}
		if got := len(x.Reply.Parts); got != len(parts) {
			return fate.Unanswered(fmt.Errorf("%w: %d answers to %d reads", wire.ErrProtocol, got, len(parts)))
		}
		results = make([]ReadResult, len(parts))
		for i, r := range x.Reply.Parts {
			results[i] = ReadResult{Data: r.Data, Stat: r.Stat, Children: r.Names}
			if err := fate.OfCode(r.Code); err != nil {
				results[i] = ReadResult{Err: &OpError{Op: plain[i].name, Path: plain[i].path, Outcome: OutcomeRefused, Err: err, identities: o.core.cfg.identities()}}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// ask sends a request that needs f, and reads.
func (o *ops) ask(ctx context.Context, s *sessionState, f session.Feature, x *wire.Exchange) error {
	if err := s.Supports(ctx, f); err != nil {
		return err
	}
	return s.Refused(f, s.Call(ctx, x))
}
