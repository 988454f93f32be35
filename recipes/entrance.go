package recipes

import (
	"context"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Lock is what an [InterProcessMultiLock] is made of: [InterProcessMutex],
// [ReadLock], [WriteLock], [InterProcessSemaphoreMutex] and
// [InterProcessSemaphore.Permits].
type Lock interface {
	// Path is the path of the lock.
	Path() string
	entrance() entrance
}

// turn waits for the turn of a member, or does not, and removes the member's
// node on error.
type turn func(context.Context, *seqqueue.Member) (place, error)

// line is a queue: a path on the servers of a client.
type line struct {
	root *client.Client
	path string
}

// entrance is how a multi-lock gets into one of its locks.
type entrance struct {
	path  string
	line  line
	queue *seqqueue.Queue
	node  newNode       // of the queue; In is set, and Data is not
	data  func() []byte // of the node, once the client is connected

	// reenter returns what ctx descends from, nil if that is nothing, or
	// refuses what would be waited for in vain.
	reenter    func(context.Context) (*Hold, error)
	free       func(context.Context) error // a BusyError if somebody would be ahead
	await, try turn
}

// line is the same for all locks that wait in one queue.
func (l *lockInternals) line() line { return line{l.key.root, l.key.path} }

func (l *lockInternals) entrance() entrance {
	granted := func(by func(context.Context, *seqqueue.Member) error) turn {
		return func(ctx context.Context, m *seqqueue.Member) (place, error) {
			if err := by(ctx, m); err != nil {
				m.LeaveInBackground()
				return place{}, err
			}
			return l.place(m), nil
		}
	}
	return entrance{
		path: l.path, line: l.line(), queue: l.queue,
		node: newNode{
			Dir: l.path, Prefix: l.tag, In: l.c,
			ACL: l.acl, List: true,
		},
		data:    func() []byte { return l.nodeData(l.c) },
		reenter: l.reenter,
		free:    l.free,
		await:   granted(l.await),
		try:     granted(l.try),
	}
}
