package caches

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

// Command is the argument with which this program serves the caches of Go.
const Command = "caches-worker"

const (
	sessionTimeout = 30 * time.Second
	awaitLimit     = 2 * time.Minute
	poll           = time.Millisecond
)

// Serve obeys the commands of in, of which the comment of the package tells.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{}
	defer s.leave()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		said, err := s.obey(ctx, words[0], words[1:])
		answer := strings.TrimSpace("ok " + said)
		if err != nil {
			answer = "error " + strings.Join(strings.Fields(err.Error()), " ")
		}
		if _, err := fmt.Fprintln(out, answer); err != nil || words[0] == "quit" {
			return err
		}
	}
	return lines.Err()
}

// server has one connection and one cache at a time.
type server struct {
	kind string
	c    *client.Client // of Docent's caches
	conn *zk.Conn       // of the loops
	tree *cache.Tree[[]byte]
	kept map[string]kept // of a loop
}

// kept is what a loop keeps of a node.
type kept struct {
	data []byte
	stat *zk.Stat
	// own and below are the node's watches.
	own, below <-chan zk.Event
}

var errNothing = errors.New("no tree is loaded")

func (s *server) obey(ctx context.Context, verb string, args []string) (string, error) {
	const pair = 2
	switch {
	case verb == "connect" && len(args) == pair:
		s.leave()
		s.kind = args[0]
		return "", s.connect(ctx, args[1])
	case verb == "load" && len(args) == 1:
		l, err := s.load(ctx, args[0])
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(l)
		return string(text), err
	case verb == "await" && len(args) == pair:
		return "", s.await(ctx, args[0], args[1])
	case verb == "memory":
		return strconv.FormatUint(memory(), 10), nil
	case verb == "drop":
		s.drop()
		return "", nil
	case verb == "quit":
		s.leave()
		return "", nil
	}
	return "", fmt.Errorf("no such command: %s %v", verb, args)
}

func (s *server) connect(ctx context.Context, addr string) (err error) {
	switch s.kind {
	case docent, docentOneShot:
		s.c, err = client.Connect(ctx, addr, client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler)))
		return err
	case loop, watchingLoop:
	default:
		return fmt.Errorf("no such cache: %s", s.kind)
	}
	var events <-chan zk.Event
	s.conn, events, err = zk.Connect([]string{addr}, sessionTimeout, zk.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	late := time.NewTimer(awaitLimit)
	defer late.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return nil
			}
		case <-late.C:
			return errors.New("no session at " + addr)
		}
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (s *server) leave() {
	s.drop()
	if s.c != nil {
		_ = s.c.Close()
	}
	if s.conn != nil {
		s.conn.Close()
	}
	s.c, s.conn = nil, nil
}

func (s *server) drop() {
	if s.tree != nil {
		s.tree.Close()
	}
	s.tree, s.kept = nil, nil
}

func (s *server) load(ctx context.Context, path string) (l Load, err error) {
	if s.tree != nil || s.kept != nil {
		return l, errors.New("a tree is loaded; drop it first")
	}
	peak := watch()
	begun := time.Now()
	switch s.kind {
	case docent:
		err = s.cache(ctx, path)
	case docentOneShot:
		err = s.cache(ctx, path, cache.WithOneShotWatches())
	case loop, watchingLoop:
		s.kept = map[string]kept{}
		err = s.visit(path, s.kind == watchingLoop)
	default:
		err = errors.New("load follows connect")
	}
	l.Took, l.Peak = time.Since(begun), peak()
	if err != nil {
		return l, err
	}
	l.Nodes = len(s.kept)
	if s.tree != nil {
		l.Nodes = s.tree.Snapshot().Len()
	}
	return l, nil
}

func (s *server) cache(ctx context.Context, path string, opts ...cache.Option) (err error) {
	unlimited := cache.WithLimits(cache.Limits{Nodes: -1, Bytes: -1})
	if s.tree, err = cache.NewTree(s.c, path, cache.Bytes, append(opts, unlimited)...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	return s.tree.Start(ctx)
}

// visit reads a node and then those below it. Without watches it lists only the nodes
// that have children.
func (s *server) visit(path string, watch bool) (err error) {
	var (
		k     kept
		names []string
	)
	if watch {
		if k.data, k.stat, k.own, err = s.conn.GetW(path); err != nil {
			return err
		}
		names, _, k.below, err = s.conn.ChildrenW(path)
	} else {
		if k.data, k.stat, err = s.conn.Get(path); err != nil {
			return err
		}
		if k.stat.NumChildren > 0 {
			names, _, err = s.conn.Children(path)
		}
	}
	if err != nil {
		return err
	}
	s.kept[path] = k
	for _, name := range names {
		if err := s.visit(path+"/"+name, watch); err != nil {
			return err
		}
	}
	return nil
}

// await looks again and again: to wait for a transaction would make a cache ask.
func (s *server) await(ctx context.Context, path, version string) error {
	if s.tree == nil {
		return errNothing
	}
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for {
		if n, ok := s.tree.Snapshot().Get(path); ok && strconv.Itoa(int(n.Version)) == version {
			return nil
		}
		if err := sleep(ctx, poll); err != nil {
			return fmt.Errorf("%s has not version %s: %w", path, version, err)
		}
	}
}

// watch looks at the bytes of the heap in use, until the function is called, which returns the most.
func watch() (most func() int64) {
	end, peak := make(chan struct{}), make(chan int64)
	go func() {
		sample, highest := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}, uint64(0)
		for {
			metrics.Read(sample)
			highest = max(highest, sample[0].Value.Uint64())
			select {
			case <-end:
				peak <- int64(highest) //nolint:gosec // no heap is so large
				return
			case <-time.After(poll):
			}
		}
	}()
	return func() int64 {
		close(end)
		return <-peak
	}
}

// memory is how many bytes of the heap are in use.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
