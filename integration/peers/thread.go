package peers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Thread is a thread of the peer, made at its first command. Curator's locks belong to
// threads: the one that acquired must release, and may acquire again.
type Thread struct {
	peer *Peer
	name string
}

// Thread returns the thread of this name, a word.
func (p *Peer) Thread(name string) *Thread { return &Thread{peer: p, name: name} }

// Acquire waits for so many permits of a lock, 1 if it has no permits, and returns the
// nodes of these permits. It returns [ErrTimeUp] when the peer, by its own clock, got
// nothing in this time.
func (th *Thread) Acquire(ctx context.Context, lock string, permits int, wait time.Duration) ([]string, error) {
	millis := int64(-1)
	if wait >= 0 {
		millis = wait.Milliseconds()
	}
	text, err := th.peer.call(ctx, th.name, fmt.Sprintf("acquire %s %d %d", lock, millis, permits))
	return strings.Fields(text), err
}

// Release undoes one Acquire of this thread.
func (th *Thread) Release(ctx context.Context, lock string) error {
	_, err := th.peer.call(ctx, th.name, "release "+lock)
	return err
}

// Leads reports whether a latch believes that it leads.
func (th *Thread) Leads(ctx context.Context, latch string) (bool, error) {
	_, err := th.peer.call(ctx, th.name, "leads "+latch)
	if errors.Is(err, ErrTimeUp) {
		return false, nil
	}
	return err == nil, err
}

// Revoked waits until a client asks for a revocable lock that this thread holds, and
// returns [ErrTimeUp] when none does.
func (th *Thread) Revoked(ctx context.Context, lock string, wait time.Duration) error {
	_, err := th.peer.call(ctx, th.name, fmt.Sprintf("revoked %s %d", lock, wait.Milliseconds()))
	return err
}

// Revoke asks the owner of a node, with Curator's Revoker, to release.
func (th *Thread) Revoke(ctx context.Context, client, node string) error {
	_, err := th.peer.call(ctx, th.name, "revoke "+client+" "+node)
	return err
}

// Versioned is a value of a SharedCount.
type Versioned struct {
	Version int32
	Value   int32
}

func versioned(text string) (v Versioned, err error) {
	_, err = fmt.Sscan(text, &v.Version, &v.Value)
	return v, err
}

// Get returns the value that Curator saw last, which may be an old one.
func (th *Thread) Get(ctx context.Context, count string) (Versioned, error) {
	text, err := th.peer.call(ctx, th.name, "get "+count)
	if err != nil {
		return Versioned{}, err
	}
	return versioned(text)
}

// Set sets a SharedCount, whatever it is.
func (th *Thread) Set(ctx context.Context, count string, value int32) error {
	_, err := th.peer.call(ctx, th.name, fmt.Sprintf("set %s %d", count, value))
	return err
}

// TrySet sets a SharedCount if it is what Curator saw last, and returns what that was.
func (th *Thread) TrySet(ctx context.Context, count string, value int32) (Versioned, bool, error) {
	text, err := th.peer.call(ctx, th.name, fmt.Sprintf("tryset %s %d", count, value))
	if errors.Is(err, ErrTimeUp) { // "false" means that it was not
		return Versioned{}, false, nil
	}
	if err != nil {
		return Versioned{}, false, err
	}
	before, err := versioned(text)
	return before, err == nil, err
}

// Await waits until Curator has seen this value, and returns [ErrTimeUp] when it does not.
func (th *Thread) Await(ctx context.Context, count string, value int32, wait time.Duration) error {
	_, err := th.peer.call(ctx, th.name, fmt.Sprintf("await %s %d %d", count, value, wait.Milliseconds()))
	return err
}
