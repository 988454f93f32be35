package recipes

import (
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// MutexOption configures an [InterProcessMutex].
type MutexOption interface{ applyMutex(*InterProcessMutex) }

type mutexFunc func(*InterProcessMutex)

func (f mutexFunc) applyMutex(m *InterProcessMutex) { f(m) }

// WithNodeData sets what is written into the lock's nodes, where others can
// read who holds it (Curator: getLockNodeBytes). The default is
// client.DefaultData, the address of this host.
func WithNodeData(data []byte) MutexOption {
	return mutexFunc(func(m *InterProcessMutex) { m.data, m.named = slices.Clone(data), true })
}

// WithNodeACL sets the ACL of the lock's nodes and of the parents made for
// them. The default is that of the client. Everybody who contends must be able
// to read the nodes, and to create, delete and list in the directory.
func WithNodeACL(acl ...zk.ACL) MutexOption {
	return mutexFunc(func(m *InterProcessMutex) { m.acl = client.ACL(slices.Clone(acl)...) })
}
