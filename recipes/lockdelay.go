package recipes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// ErrLockDelay says that the last holder did not release the lock, and that
// its delay has not passed. It is what TryAcquire returns instead of waiting
// for that; see [WithLockDelay].
var ErrLockDelay = errors.New("the last holder did not release the lock, and its delay has not passed")

// WithLockDelay makes an [InterProcessMutex] wait for d before it is held after
// a holder that did not release it: one that crashed, lost its session, or had
// its node deleted. It is for resources that can refuse no fencing token: what
// such a holder has sent and what is still on its way may arrive for so long
// (Chubby's lock-delay). After a release nobody waits.
//
// The directory's data says who holds the lock. A holder writes it before it
// holds, which costs an acquire one read and one write more, and again in the
// transaction that releases. Everybody must use it, with the same d: Curator, which knows no such thing, is excluded as ever, but
// leaves no mark, and nobody waits after it. Nor does anybody if the server
// removed the empty directory in between, which it does at its next sweep,
// every minute: let a directory that must not be removed have another child.
//
// The delay begins when the next contender sees that it is due, and the clocks
// of the servers, which should agree, tell when it has passed. While it does,
// Queue calls the one who waits for it the holder.
//
// It takes the right to write the directory, whose data must be nobody else's.
func WithLockDelay(d time.Duration) LockOption {
	return lockFunc(func(s *settings) { s.delay = d })
}

// undelayed refuses the option where it is of no use: a lock that several hold
// has no last holder.
func (s *settings) undelayed() error {
	if s.delay != 0 {
		return errors.New("recipes: WithLockDelay is for an InterProcessMutex only")
	}
	return nil
}

// The data of the directory: a word and the holder's token. Nothing, as a
// directory is made, stands for released.
const (
	markHeld     = "docent-held "
	markLost     = "docent-lost " // since the directory's mtime
	markReleased = "docent-released "
)

func mark(word string, token int64) []byte { return strconv.AppendInt([]byte(word), token, 16) }

// settle makes member, whose turn has come, the holder that the directory
// names. After a holder that did not release the lock it waits, or, unless wait
// is set, returns ErrLockDelay.
func (l *lockInternals) settle(ctx context.Context, member *seqqueue.Member, wait bool) error {
	if l.delay == 0 {
		return nil
	}
	s := member.Session
	own := mark(markHeld, member.Czxid)
	over := "" // the delay that was waited for
	for {
		data, stat, err := s.Get(ctx, l.path)
		if err != nil {
			return err
		}
		text := string(data)
		switch {
		case text == string(own):
			return nil // the answer that said so was lost
		case text == over, strings.HasPrefix(text, markReleased):
		case strings.HasPrefix(text, markHeld):
			// The first to see it begins the delay, by the leader's clock.
			lost := []byte(markLost + text[len(markHeld):])
			if _, err := s.Set(ctx, l.path, lost, stat.Version, client.AcceptEqual()); err != nil && !errors.Is(err, zk.ErrBadVersion) {
				return err
			}
			continue
		case strings.HasPrefix(text, markLost):
			if err := l.delayed(ctx, member, stat, wait); err != nil {
				return err
			}
			over = text
		default:
			return fmt.Errorf("the directory %s has data of somebody else's, where a lock with a delay says who holds it", l.path)
		}
		_, err = s.Multi(ctx, client.CheckOp(member.Path, client.AnyVersion), client.SetOp(l.path, own, client.AnyVersion))
		if client.UnknownOutcome(err) && ctx.Err() == nil && s.Err() == nil {
			continue
		}
		var refused *client.MultiError
		if errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, zk.ErrNoNode) {
			return ErrNodeDeleted
		}
		return err
	}
}

// delayed waits for the rest of the delay that began when the directory was
// last written. How much has passed is told by the clocks of the servers alone:
// the own node says what time it was there.
func (l *lockInternals) delayed(ctx context.Context, member *seqqueue.Member, directory *zk.Stat, wait bool) error {
	there, own, err := member.Session.Exists(ctx, member.Path)
	switch {
	case err != nil:
		return err
	case !there:
		return ErrNodeDeleted
	}
	rest := l.delay - max(0, time.Duration(own.Ctime-directory.Mtime)*time.Millisecond)
	if rest <= 0 {
		return nil
	}
	if !wait {
		return fmt.Errorf("%w (%v left)", ErrLockDelay, rest)
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctxerr.Ended(ctx)
	case <-member.Session.Context().Done():
		return member.Session.Err()
	}
}

// leaveReleased is seqqueue.Member.Leave with the mark of a release in the same
// transaction. It is repeated when its answer is lost: were the node deleted
// without the mark, the next one would wait for nothing. If the mark may not be
// written the node goes without it.
func (l *lockInternals) leaveReleased(ctx context.Context, member *seqqueue.Member) error {
	s := member.Session
	for doubt := false; ; doubt = true {
		if err := s.Err(); err != nil {
			return err
		}
		_, err := s.Multi(ctx,
			client.DeleteOp(member.Path, client.AnyVersion),
			client.SetOp(l.path, mark(markReleased, member.Czxid), client.AnyVersion))
		var refused *client.MultiError
		switch {
		case err == nil:
			return nil
		case doubt && errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
			return nil // by the one in doubt, or by somebody in this very moment
		case ctx.Err() != nil && ctx != s.Context():
			l.leaveReleasedInBackground(member)
			return err
		case !client.UnknownOutcome(err):
			return member.Leave(ctx)
		}
	}
}

// leaveReleasedInBackground is for those whose context has ended. It ends with
// the session at the latest, and the node with it.
func (l *lockInternals) leaveReleasedInBackground(member *seqqueue.Member) {
	go func() { _ = l.leaveReleased(member.Session.Context(), member) }()
}
