package recipes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// known are the locks whose nodes are told by their names. Each waits for its own
// kind alone, so that beside any other kind the path would be held twice. What
// stands in a lock's own line is no foreigner to it. docs/mixing.md goes through
// all pairs.
//
// A child that is no lock is not among them: a barrier, a queue's item, a
// group's member, a directory.
var known = []seqqueue.Foreign{ //nolint:gochecknoglobals // constant
	{Tag: lockTag, Recipe: "mutex", Library: protected(lockTag)}, // of go-zookeeper, too
	{Tag: readTag, Recipe: "read/write lock", Library: protected(readTag)},
	{Tag: writeTag, Recipe: "read/write lock", Library: protected(writeTag)},
	{Tag: latchTag, Recipe: "LeaderLatch", Library: protected(latchTag)},
	{Tag: leaseTag, Recipe: "semaphore", Library: protected(leaseTag)}, // in its own directory of leases
	{Tag: kazooLock, Recipe: "lock", Library: kazoo, Remedy: kazooRemedy},
	{Tag: kazooRead, Recipe: "lock", Library: kazoo, Remedy: kazooRemedy},
}

const kazooRemedy = ", or tell both of each other with WithKazoo"

// semaphoreSite is what a semaphore of ours or Curator's makes on its path. One
// of the two directories alone may be anything, such as a lock's path below
// this one. While permits are held and no contender waits, the server sweeps the
// directory of the queue, which is empty. The other one has the leases in it then.
var semaphoreSite = seqqueue.Site{Names: []string{"locks", "leases"}, Recipe: "semaphore", Last: "leases", Used: leaseIn} //nolint:gochecknoglobals // constant

// protectedName is the beginning of the nodes of ours, Curator's and
// go-zookeeper's locks.
var protectedName = regexp.MustCompile(`^_c_([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})-`)

// protected names the library of a child whose name is a protection and an id,
// the tag, and a number. Without a protection it is not taken for a lock: any
// program may name a child "block-0000000001".
func protected(tag string) func(string) string {
	return func(name string) string {
		id := protectedName.FindString(name)
		if id == "" || strings.LastIndex(name, tag) != len(id) {
			return ""
		}
		return familyOf(name).String()
	}
}

// kazoo names kazoo if a child with kazoo's tag has its form of id, too.
func kazoo(name string) string {
	if familyOf(name) != FamilyKazoo {
		return ""
	}
	return FamilyKazoo.String()
}

// leaseIn returns the path of a lease in dir, "" if there is none. A node that is not
// deleted with a session is no lease, whatever its name. A lease that may not be read
// counts. A directory that may not be listed is taken for an ordinary child.
func leaseIn(ctx context.Context, at seqqueue.Reader, dir string) (string, error) {
	children, _, err := at.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return "", nil
	}
	for _, name := range children {
		if _, ok := leaseNumber(name); !ok {
			continue
		}
		exists, stat, err := at.Exists(ctx, dir+"/"+name)
		switch {
		case errors.Is(err, zk.ErrNoAuth), err == nil && exists && sessionOf(stat) != 0:
			return dir + "/" + name, nil
		case err != nil:
			return "", err
		}
	}
	return "", err
}

// refuseForeign refuses the path of a semaphore that is in use by another lock.
// Its own nodes are in directories below. The leases of kazoo's Semaphore are
// children of the path itself that are named by 32 hexadecimal digits. A path
// that may not be listed is not refused: Curator does not list it.
func (l *leases) refuseForeign(ctx context.Context, path string) error {
	children, _, err := l.c.Children(ctx, path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	return refuseForeignIn(path, children)
}

// refuseForeignIn is refuseForeign for the children of path that are known.
func refuseForeignIn(path string, children []string) error {
	for _, name := range children {
		if len(name) == 32 && strings.Trim(name, "0123456789abcdef") == "" {
			return fmt.Errorf("%w: %s/%s is a lease of kazoo's Semaphore: give each a path of its own", ErrForeignLock, path, name)
		}
	}
	return seqqueue.Tags{Foreign: known}.Refuse(path, children)
}
