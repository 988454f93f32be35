// Package kratos is Kratos' registry of services on Docent: a registrar, a discovery and its
// watcher. It has the nodes of Kratos' own registry for ZooKeeper.
package kratos

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"

	"github.com/go-kratos/kratos/v2/registry"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
)

// DefaultRoot is the directory of Kratos' own registry.
const DefaultRoot = "/microservices"

// Registry keeps the services of this process registered until they are deregistered. It is
// safe for concurrent use.
type Registry struct {
	c    *client.Client
	root string

	mu   sync.Mutex
	kept map[string]*nodes.PersistentNode // by path
}

var (
	_ registry.Registrar = (*Registry)(nil)
	_ registry.Discovery = (*Registry)(nil)
)

// New returns a registry below root. Rights and credentials are those of the client.
func New(c *client.Client, root string) *Registry {
	return &Registry{c: c, root: root, kept: map[string]*nodes.PersistentNode{}}
}

// Register returns when the service is registered; ctx bounds that alone. It replaces what
// this or another process has registered by that name and id.
func (r *Registry) Register(ctx context.Context, service *registry.ServiceInstance) error {
	data, err := json.Marshal(service)
	if err != nil {
		return err
	}
	at := path.Join(r.root, service.Name, service.ID)
	node, err := nodes.NewPersistentNode(r.c, nodes.Ephemeral, at, data, nodes.TakeOver(), nodes.WithPersistentParents())
	if err != nil {
		return err
	}
	if old := r.keep(at, node); old != nil {
		return old.Set(ctx, data)
	}
	if err := node.Start(ctx); err != nil {
		r.drop(at)
		return err
	}
	return nil
}

// keep returns the node that is kept at the path already, or nil if this one is now.
func (r *Registry) keep(at string, node *nodes.PersistentNode) *nodes.PersistentNode {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.kept[at]
	if old == nil {
		r.kept[at] = node
	}
	return old
}

// drop returns the node that was kept at the path.
func (r *Registry) drop(at string) *nodes.PersistentNode {
	r.mu.Lock()
	defer r.mu.Unlock()
	node := r.kept[at]
	delete(r.kept, at)
	return node
}

// Deregister removes the service that this registry has registered.
func (r *Registry) Deregister(ctx context.Context, service *registry.ServiceInstance) error {
	at := path.Join(r.root, service.Name, service.ID)
	node := r.drop(at)
	if node == nil {
		return fmt.Errorf("%s is not registered here", at)
	}
	return node.CloseContext(ctx)
}

// GetService returns the instances of a service. One that was never registered is an error.
func (r *Registry) GetService(ctx context.Context, name string) ([]*registry.ServiceInstance, error) {
	children, _, err := r.c.ChildrenData(ctx, path.Join(r.root, name))
	if err != nil {
		return nil, err
	}
	all := make([]*registry.ServiceInstance, len(children))
	for i, child := range children {
		if err := json.Unmarshal(child.Data, &all[i]); err != nil {
			return nil, fmt.Errorf("instance %s of %s: %w", child.Name, name, err)
		}
	}
	return all, nil
}

// Watch follows the instances of a service, which need not exist, until ctx ends.
func (r *Registry) Watch(ctx context.Context, name string) (registry.Watcher, error) {
	instances, err := cache.NewTree(r.c, path.Join(r.root, name), cache.JSON[*registry.ServiceInstance](), cache.WithDepth(1))
	if err != nil {
		return nil, err
	}
	if err := instances.Start(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{name: name, instances: instances, latest: make(chan []*registry.ServiceInstance, 1), cancel: cancel}
	go w.follow(ctx)
	return w, nil
}

// watcher is safe for concurrent use: each state goes to one caller of Next.
type watcher struct {
	name      string
	instances *cache.Tree[*registry.ServiceInstance]
	latest    chan []*registry.ServiceInstance
	cancel    context.CancelFunc
	err       error // why latest is closed
}

// follow gives the newest state to Next. A state that nobody has read is dropped.
func (w *watcher) follow(ctx context.Context) {
	defer w.instances.Close()
	defer close(w.latest)
	for change, err := range w.instances.Changes(ctx) {
		if err != nil {
			w.err = err
			return
		}
		all := w.in(change.Snapshot)
		if first := change.Kind == cache.Began; first && len(all) == 0 || !first && path.Dir(change.Path) != w.instances.Path() {
			continue // there is no instance, or none has changed
		}
		select {
		case <-w.latest:
		default:
		}
		w.latest <- all
	}
	w.err = context.Cause(ctx)
}

// in returns the instances of a snapshot.
func (w *watcher) in(s *cache.Snapshot[*registry.ServiceInstance]) []*registry.ServiceInstance {
	var all []*registry.ServiceInstance
	for _, node := range s.Children(w.instances.Path()) {
		if node.Value != nil && node.Value.Name == w.name {
			all = append(all, node.Value)
		}
	}
	return all
}

// Next returns the instances at once if there are any, and then after every change.
func (w *watcher) Next() ([]*registry.ServiceInstance, error) {
	all, ok := <-w.latest
	if !ok {
		return nil, w.err
	}
	return all, nil
}

// Stop ends the watcher and makes Next fail.
func (w *watcher) Stop() error {
	w.cancel()
	return nil
}
