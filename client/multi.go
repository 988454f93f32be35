package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Op is one part of a transaction; see [CreateOp], [SetOp], [DeleteOp] and
// [CheckOp].
type Op struct {
	name, path string
	size       int
	in         *ops // whose namespace path is in; nil: that of the transaction
	build      func(full string, acl []zk.ACL) any
	err        error
}

// In returns op with its path taken, and in the result given back, in the
// namespace of s. The transaction must be one of that session, or of a client
// of it; else, and with nil, it fails before it is sent.
func (op Op) In(s *Session) Op {
	if s == nil {
		op.err = fmt.Errorf("%w: %s %s in the namespace of a nil *Session", zk.ErrInvalidFlags, op.name, op.path)
		return op
	}
	op.in = &s.ops
	return op
}

// CreateOp makes a node. Containers and TTL nodes are not possible in a
// transaction (go-zookeeper cannot read the answer), nor are missing parents
// or protection, which need more than one request.
func CreateOp(path string, data []byte, opts ...CreateOption) Op {
	var spec createSpec
	for _, opt := range opts {
		if opt != nil {
			opt.applyCreate(&spec)
		}
	}
	op := Op{name: "create", path: path, size: len(data) + spec.size()}
	if spec.container || spec.hasTTL || spec.parents || spec.protected {
		op.err = fmt.Errorf("%w: a create in a transaction is persistent or ephemeral, sequential or not, and nothing else", zk.ErrInvalidFlags)
	}
	op.build = func(full string, acl []zk.ACL) any {
		if spec.acl != nil {
			acl = spec.acl
		}
		return &zk.CreateRequest{Path: full, Data: notNull(data), Acl: acl, Flags: spec.flags()}
	}
	return op
}

// SetOp replaces the data of a node that has the given version.
func SetOp(path string, data []byte, version int32) Op {
	return Op{name: "set", path: path, size: len(data), build: func(full string, _ []zk.ACL) any {
		return &zk.SetDataRequest{Path: full, Data: notNull(data), Version: version}
	}}
}

// DeleteOp deletes a node that has the given version.
func DeleteOp(path string, version int32) Op {
	return Op{name: "delete", path: path, build: func(full string, _ []zk.ACL) any {
		return &zk.DeleteRequest{Path: full, Version: version}
	}}
}

// CheckOp lets the transaction fail unless the node exists with the given
// version.
func CheckOp(path string, version int32) Op {
	return Op{name: "check", path: path, build: func(full string, _ []zk.ACL) any {
		return &zk.CheckVersionRequest{Path: full, Version: version}
	}}
}

// OpResult is the result of one part of a transaction that was committed.
type OpResult struct {
	Path string   // of a created node
	Stat *zk.Stat // of a set node
}

// MultiError says which part of a transaction was refused. Nothing of the
// transaction was applied.
type MultiError struct {
	Index int    // of the part that failed, from 0
	Op    string // what it was: "create", "check", ...
	Path  string
	Err   error
}

// Error names the part that failed and why.
func (e *MultiError) Error() string {
	return fmt.Sprintf("part %d (%s %s): %v", e.Index, e.Op, e.Path, e.Err)
}

// Unwrap returns why the part failed.
func (e *MultiError) Unwrap() error { return e.Err }

// Multi applies all parts in one transaction or none. A refused transaction
// fails with a [*MultiError]. After an unknown outcome it is not repeated:
// the error matches [UnknownOutcome].
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
		a, err := call(ctx, t.s, transaction(reqs))
		if err == nil && a.err != nil {
			err = culprit(parts, a.parts, a.err)
		}
		if err != nil {
			return err
		}
		results = make([]OpResult, len(a.parts))
		for i, r := range a.parts {
			results[i].Stat = r.Stat
			if r.String != "" {
				results[i].Path = o.of(parts[i]).stripped(r.String)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// multiAnswer is the answer to a transaction: one that fails still has a result
// for each part, which must survive beside the error.
type multiAnswer struct {
	parts []zk.MultiResponse
	err   error
}

func transaction(reqs []any) func(*zk.Conn) (multiAnswer, error) {
	return func(c *zk.Conn) (multiAnswer, error) {
		res, err := c.Multi(reqs...)
		return answered(len(reqs), res, err)
	}
}

// answered is the answer to a transaction of n parts. A leader that has ended
// the session says so as if the first part had been refused; it is no fault of
// that part.
func answered(n int, res []zk.MultiResponse, err error) (multiAnswer, error) {
	for _, part := range res {
		if errors.Is(part.Error, zk.ErrSessionExpired) {
			return multiAnswer{}, part.Error
		}
	}
	if len(res) == n {
		return multiAnswer{res, err}, nil
	}
	return multiAnswer{}, err
}

// of returns whose paths are those of p.
func (o *ops) of(p Op) *ops {
	if p.in == nil {
		return o
	}
	return p.in
}

func (o *ops) requests(parts []Op) ([]any, error) {
	reqs := make([]any, len(parts))
	size := 0
	acl := o.core.cfg.acl()
	for i, p := range parts {
		if p.build == nil {
			p.err = fmt.Errorf("%w: part %d is an empty Op; use CreateOp, SetOp, DeleteOp or CheckOp", zk.ErrInvalidFlags, i)
		}
		if p.err != nil {
			return nil, &fault{p.err, OutcomeNeverSent}
		}
		in := o.of(p)
		if in.core != o.core || (o.bound != nil && in.bound != o.bound) {
			return nil, &fault{fmt.Errorf("%w: part %d (%s %s) is in the namespace of another session", zk.ErrInvalidFlags, i, p.name, p.path), OutcomeNeverSent}
		}
		full, err := in.full(p.path)
		if err != nil {
			return nil, err
		}
		reqs[i] = p.build(full, acl)
		size += len(full) + p.size + createSpec{acl: acl}.size() + 32
	}
	return reqs, o.fits(size)
}

// culprit finds the part that was refused: those before it have no error,
// those after it only say that they were not executed.
func culprit(parts []Op, answers []zk.MultiResponse, err error) error {
	for i, a := range answers {
		typed := a.Error
		if typed != nil {
			typed, _ = serverError(typed)
		}
		if typed != nil && !errors.Is(typed, CodeRuntimeInconsistency) {
			return &fault{&MultiError{Index: i, Op: parts[i].name, Path: parts[i].path, Err: typed}, OutcomeRefused}
		}
	}
	fate, typed := outcome(err)
	return &fault{typed, fate}
}
