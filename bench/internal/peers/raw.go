package peers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/bench/internal/load"
)

// members are the locks of a multi-lock.
func members(path string) []string {
	var all []string
	for i := range load.MultiLocks {
		all = append(all, fmt.Sprintf("%s-%c", path, 'a'+i))
	}
	return all
}

// rawNodes is the two round trips that ZooKeeper cannot spare. It creates ephemeral
// sequential nodes and deletes them again, several by one transaction. It does not
// ask whether it is first, so it is no lock.
type rawNodes struct {
	c     *zk.Conn
	dirs  []string // one for each node
	nodes []string
}

// Acquire creates the nodes.
func (r *rawNodes) Acquire(context.Context) error {
	r.nodes = r.nodes[:0]
	if len(r.dirs) == 1 {
		node, err := r.c.Create(r.dirs[0]+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
		r.nodes = append(r.nodes, node)
		return err
	}
	var ops []any
	for _, dir := range r.dirs {
		ops = append(ops, &zk.CreateRequest{Path: dir + "/lock-", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential})
	}
	made, err := r.c.Multi(ops...)
	for _, m := range made {
		r.nodes = append(r.nodes, m.String)
	}
	return err
}

// Release deletes the nodes.
func (r *rawNodes) Release(context.Context) error {
	if len(r.nodes) == 1 {
		return r.c.Delete(r.nodes[0], -1)
	}
	var ops []any
	for _, node := range r.nodes {
		ops = append(ops, &zk.DeleteRequest{Path: node, Version: -1})
	}
	_, err := r.c.Multi(ops...)
	return err
}

func raw(spec *load.Spec) (*load.Field, error) {
	all, err := conns(spec)
	if err != nil {
		return nil, err
	}
	if err := directory(all[0], spec.Root); err != nil {
		return nil, err
	}
	field := &load.Field{Floor: true, Close: closing(all)}
	if spec.Kind == load.Counter || spec.Kind == load.Promoted {
		return field, rawNumbers(field, spec, all)
	}
	for i := range spec.Contenders {
		dirs := rawDirs(spec, i)
		for _, dir := range dirs {
			if err := directory(all[0], dir); err != nil {
				return nil, err
			}
			if err := synced(all, dir); err != nil {
				return nil, err
			}
		}
		r := &rawNodes{c: all[i%spec.Sessions], dirs: dirs}
		field.Contenders = append(field.Contenders, load.Contender{Lock: r, Write: rawWrite(spec, r)})
	}
	return field, nil
}

// rawDirs is where contender i makes its nodes, a node for each entry.
func rawDirs(spec *load.Spec, i int) []string {
	switch spec.Kind {
	case load.Multi:
		return members(spec.Path(i))
	case load.Semaphore:
		var dirs []string
		for range spec.Permits {
			dirs = append(dirs, spec.Path(i))
		}
		return dirs
	case load.Mutex, load.ReadWrite, load.Counter, load.Promoted:
	}
	return []string{spec.Path(i)}
}

// rawWrite is what writes where there are readers.
func rawWrite(spec *load.Spec, r *rawNodes) load.Locker {
	if spec.Kind == load.ReadWrite {
		return r
	}
	return nil
}

// rawNumber adds 1: it gets the number, and sets it at the version that it got. It
// repeats both until no other contender has come in between.
type rawNumber struct {
	c    *zk.Conn
	path string
}

// Acquire adds 1.
func (r rawNumber) Acquire(ctx context.Context) error {
	for ctx.Err() == nil {
		data, stat, err := r.c.Get(r.path)
		if err != nil {
			return err
		}
		next := binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(data)+1)
		if _, err = r.c.Set(r.path, next, stat.Version); !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
	return ctx.Err()
}

// Release does nothing.
func (rawNumber) Release(context.Context) error { return nil }

// rawNumbers adds the contenders of a number to field.
func rawNumbers(field *load.Field, spec *load.Spec, all []*zk.Conn) error {
	path := spec.Path(0)
	if _, err := all[0].Create(path, make([]byte, 8), 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	if err := synced(all, path); err != nil {
		return err
	}
	for i := range spec.Contenders {
		field.Contenders = append(field.Contenders, load.Contender{Lock: rawNumber{all[i%spec.Sessions], path}})
	}
	return nil
}
