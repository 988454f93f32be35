package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// ProtectedPrefix starts the name of a protected node; a UUID in its
// canonical form and a dash follow. It is the same as in Curator
// (ProtectedUtils), so that either library knows the other's nodes.
const ProtectedPrefix = "_c_"

// newProtectedPrefix returns "_c_<uuid>-" with a random UUID. Its version is 8,
// free form (RFC 9562), where Curator's is 4: that is how people, and
// recipes.Contender, tell the nodes of the two apart.
func newProtectedPrefix() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	id := make([]byte, 0, len(ProtectedPrefix)+len(b)*2+5)
	id = append(id, ProtectedPrefix...)
	for _, group := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		id = append(hex.AppendEncode(id, group), '-')
	}
	return string(id)
}

// CreateAndList makes a protected, ephemeral, sequential node named prefix
// and a number in dir, and lists dir. It is the first step of every recipe
// that queues. Both requests leave together, so it costs one round trip; the
// list may be missing if the connection failed in between. Missing parents
// are made as by [WithParents].
//
// On error no node remains, or its removal goes on in the background until it
// succeeds or the session is over.
func (s *Session) CreateAndList(ctx context.Context, dir, prefix string, data []byte, opts ...CreateOption) (Entry, error) {
	return s.createAndList(ctx, dir, prefix, "", data, opts)
}

// CreateAndListBeside is [Session.CreateAndList] and lists another directory,
// beside, as well, in the same round trip. Which of the lists is answered
// first is not known: see [Entry].
func (s *Session) CreateAndListBeside(ctx context.Context, dir, prefix, beside string, data []byte, opts ...CreateOption) (Entry, error) {
	full, err := s.full(beside)
	if err != nil {
		return Entry{}, &OpError{Op: "create", Path: beside, Outcome: OutcomeNeverSent, Err: err}
	}
	return s.createAndList(ctx, dir, prefix, full, data, opts)
}

func (s *Session) createAndList(ctx context.Context, dir, prefix, beside string, data []byte, opts []CreateOption) (Entry, error) {
	spec, err := s.spec(slices.Concat(opts, []CreateOption{Ephemeral(), Sequential(), Protected(), WithParents()}))
	if err == nil {
		_, err = s.full(dir)
	}
	if err != nil {
		return Entry{}, &OpError{Op: "create", Path: dir, Outcome: OutcomeNeverSent, Err: err}
	}
	return s.protected(ctx, join(dir, prefix), data, spec, true, beside)
}

// protected creates a protected node. The rule that everything here serves:
// before a create is repeated, or given up, the fate of the last one is known
// or somebody stays behind who will find out.
func (o *ops) protected(ctx context.Context, path string, data []byte, spec createSpec, list bool, beside string) (e Entry, err error) {
	full, err := o.creatable(path, data, spec)
	if err != nil {
		return Entry{}, &OpError{Op: "create", Path: path, Outcome: OutcomeNeverSent, Err: err}
	}
	p := &protectedCreate{ops: o, spec: spec, data: data, list: list, beside: beside}
	p.dir, p.name = split(full)
	err = o.do(ctx, "create", path, resolving, func(ctx context.Context, t try) (err error) {
		e, err = p.try(ctx, t.s)
		return err
	})
	if err != nil {
		return Entry{}, p.abandon(err)
	}
	e.Path = o.stripped(e.Path)
	return e, nil
}

// protectedCreate is the state of one protected create over all its tries.
type protectedCreate struct {
	*ops
	spec   createSpec
	data   []byte
	dir    string // full path of the parent
	name   string
	list   bool   // dir
	beside string // full path of another directory to list, or ""

	prefix string           // "_c_<uuid>-" in use
	owner  *session         // session of the newest create
	doubt  bool             // that create may have been applied
	last   *pending[string] // that create
}

func (p *protectedCreate) try(ctx context.Context, s *session) (Entry, error) {
	if p.doubt && p.spec.ephemeral && p.owner != s {
		// The node goes with its session, or has gone. It must not be taken
		// for one of this session (CURATOR-498).
		p.doubt, p.prefix = false, ""
	}
	if p.doubt {
		e, found, err := p.find(ctx, s)
		if err != nil || found {
			p.doubt = err != nil
			return e, err
		}
		p.doubt = false
	}
	if p.prefix == "" {
		p.prefix = newProtectedPrefix()
	}
	var e Entry
	err := p.withParents(ctx, s, join(p.dir, p.name), p.spec, func() (err error) {
		e, err = p.create(ctx, s)
		return err
	})
	return e, err
}

// create is one create request, with the lists right behind it on the wire.
func (p *protectedCreate) create(ctx context.Context, s *session) (Entry, error) {
	full := join(p.dir, p.prefix+p.name)
	tracked := s.link.TrackCreate(full)
	defer tracked.Forget()
	p.owner, p.doubt = s, true
	p.last = start(s, p.spec.send(full, p.data))
	behind := make(lists)
	if p.list {
		select {
		case <-tracked.Leaving():
			behind.add(s, p.dir)
			if p.beside != "" {
				behind.add(s, p.beside)
			}
		case <-p.last.done:
		case <-ctx.Done():
		}
	}
	made, err := p.last.wait(ctx)
	if err != nil {
		var ft *fault
		p.doubt = !errors.As(err, &ft) || ft.outcome == OutcomeUnknown
		return Entry{}, err
	}
	p.doubt = false
	e := Entry{Path: made}
	e.Czxid, _ = tracked.Zxid()
	behind.tell(ctx, &e, p.dir, p.beside)
	return e, nil
}

// find looks for the node of a create whose answer was lost. The Sync makes
// sure that a create which the old server had passed on is seen (a lagging
// server would hide it, and a second node would wait behind the first for
// ever); the owner check, that the node is this session's.
func (p *protectedCreate) find(ctx context.Context, s *session) (Entry, bool, error) {
	names, err := findPrefix(ctx, s, p.dir, p.prefix)
	if err != nil || len(names) == 0 {
		return Entry{}, false, err
	}
	// Two nodes with one id can only come of a request that was delivered
	// twice; the first in line is kept.
	slices.Sort(names)
	for _, extra := range names[1:] {
		p.core.remover.remove(s, join(p.dir, extra))
	}
	full := join(p.dir, names[0])
	stat, err := call(ctx, s, exists(full))
	switch {
	case err != nil:
		return Entry{}, false, err
	case stat == nil:
		return Entry{}, false, nil
	case p.spec.ephemeral && stat.EphemeralOwner != s.link.SessionID():
		return Entry{}, false, nil
	}
	return Entry{Path: full, Czxid: stat.Czxid}, true, nil
}

// findPrefix lists the children of dir whose names start with prefix, as the
// leader knows them.
func findPrefix(ctx context.Context, s *session, dir, prefix string) ([]string, error) {
	if err := syncOn(ctx, s, dir); err != nil {
		return nil, err
	}
	all, err := call(ctx, s, children(dir))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	var found []string
	for _, name := range all.names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found, err
}

// abandon leaves the create to the remover if it may have made, or may yet
// make, a node, and returns err with that said.
func (p *protectedCreate) abandon(err error) error {
	if !p.doubt {
		return err
	}
	left := abandoned{owner: p.owner, nodes: []protectedName{{p.dir, p.prefix}}}
	if !p.spec.ephemeral {
		left.owner = nil
	}
	last := p.last
	left.settled = func(ctx context.Context) ([]string, error) {
		made, err := last.wait(ctx)
		return []string{made}, err
	}
	p.core.remover.abandon(left)
	var op *OpError
	if errors.As(err, &op) {
		op.Outcome = OutcomeUnknown
	}
	return err
}
