package recipes

import (
	"context"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Permits is n permits of the semaphore as one of the locks of an
// [InterProcessMultiLock].
func (s *InterProcessSemaphore) Permits(n int) Lock { return permits{s, n} }

type permits struct {
	*InterProcessSemaphore

	n int
}

// entrance enters the queue of the semaphore together with those of the other
// locks, and takes the permits when it is first there. Whoever holds permits
// meanwhile waits for nothing any more, or entered all of their queues before.
func (p permits) entrance() entrance {
	gate := p.gate
	return entrance{
		path: p.path, line: gate.line(), queue: gate.queue,
		node: newNode{
			Dir: gate.path, Prefix: gate.tag, In: p.c,
			ACL: gate.acl, List: true, Beside: p.leases.dir,
		},
		data:    func() []byte { return gate.nodeData(p.c) },
		reenter: func(ctx context.Context) (*Hold, error) { return nil, p.admit(ctx, p.n) },
		free:    func(ctx context.Context) error { return p.free(ctx, p.n) },
		await: func(ctx context.Context, m *seqqueue.Member) (place, error) {
			return p.await(ctx, m, p.n)
		},
		try: func(ctx context.Context, m *seqqueue.Member) (place, error) {
			return p.try(ctx, m, p.n)
		},
	}
}

func (m *InterProcessSemaphoreMutex) entrance() entrance {
	return permits{m.semaphore, 1}.entrance()
}
