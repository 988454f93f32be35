package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

// stage is where a program is played.
type stage struct {
	*rig

	clients  []*client.Client
	dir      string
	objects  []*object
	paper    paper
	czxid    int64     // of the node that all share, before the call
	data     string    // of a persistent one
	onlooker *follower // of a group
	leave    context.CancelFunc
}

// path is that of the node that all share.
func (s *stage) path() string { return s.dir + "/n" }

// text is the data of an object.
func text(i, gen int) string { return fmt.Sprintf("%d.%d", i, gen) }

// newStage makes the objects of a program.
func (r *rig) newStage(k *kind, clients []*client.Client, dir string) *stage {
	r.Helper()
	s := &stage{rig: r, clients: clients, dir: dir, paper: paper{kind: k, owner: -1}, leave: func() {}}
	for i := range k.objects {
		c, data := clients[k.clientOf(i)], []byte(text(i, 0))
		n, err := nodes.NewPersistentNode(c, k.mode, s.path(), data, k.opts...)
		if k.group {
			var m *nodes.GroupMember
			m, err = nodes.NewGroupMember(c, dir, fmt.Sprint("m", i), data, k.opts...)
			n = m.PersistentNode
		}
		r.Check(err)
		s.objects = append(s.objects, &object{PersistentNode: n, cancel: func() {}})
	}
	if k.group {
		g, err := nodes.NewGroup(clients[0], dir)
		r.Check(err)
		var ctx context.Context
		ctx, s.leave = context.WithCancel(r.Ctx)
		s.onlooker = r.follow(ctx, g)
	}
	return s
}

// call makes a call, and waits until all is at rest.
func (s *stage) call(call string) error {
	what, i := parse(call)
	before := s.paper
	s.paper.play(call)
	switch o := s.objects[min(i, len(s.objects)-1)]; what {
	case "start":
		if before.at[i] == fresh {
			s.start(o)
		}
	case "cancel":
		o.cancel()
	case "set":
		done, data := make(chan error, 1), []byte(text(i, s.paper.gen[i]))
		o.sets = append(o.sets, done)
		go func() { done <- o.Set(s.Ctx, data) }() // ends with the program
	case "close":
		if err := o.Close(); err != nil {
			return err
		}
	case "delete":
		for _, name := range s.Srv.Children(s.dir) {
			if err := s.Srv.Delete(s.dir + "/" + name); err != nil {
				return err
			}
		}
	case "expire":
		s.Srv.ExpireSession(s.SessionID(s.clients[i]))
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if s.paper.kind.own {
		return s.compareOwn(call, before)
	}
	return s.compareShared(call, before)
}

// start calls Start in a goroutine, with a context of its own that ends with the call.
func (s *stage) start(o *object) {
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(s.Ctx)
	o.start, o.cancel = done, cancel
	go func() { // ends with the program
		done <- o.Start(ctx)
		cancel() // the context bounds the start alone
	}()
}

// compareOwn compares what stands with the rule, where each object has a node of its own.
func (s *stage) compareOwn(call string, before paper) error {
	p := &s.paper
	want := p.wanting()
	if all := s.Srv.Children(s.dir); len(all) != len(want) {
		return fmt.Errorf("nodes %v stand, by the rule those of %v", all, want)
	}
	for _, i := range want {
		o := s.objects[i]
		now := o.Status()
		node, there := s.Srv.Node(now.Path)
		switch {
		case !there || string(node.Data) != text(i, p.gen[i]):
			return fmt.Errorf("the node of object %d has %q, by the rule %q", i, node.Data, text(i, p.gen[i]))
		case p.kind.ephemeral() && node.Stat.EphemeralOwner != s.SessionID(s.clients[p.kind.clientOf(i)]):
			return fmt.Errorf("the node of object %d is of session %#x", i, node.Stat.EphemeralOwner)
		case before.at[i] == live && !p.remade(call, i) && node.Stat.Czxid != o.czxid:
			return fmt.Errorf("the node of object %d was made again without a need", i)
		case before.at[i] == live && p.kind.mode != nodes.Ephemeral && now.Path[len(now.Path)-10:] != o.path[len(o.path)-10:]:
			return fmt.Errorf("the node of object %d has got the number of %s", i, now.Path)
		}
		o.path, o.czxid = now.Path, node.Stat.Czxid
		if err := s.compareTold(i, nodes.Ours, node); err != nil {
			return err
		}
	}
	for i, at := range p.at[:p.kind.objects] {
		if at == live {
			continue
		}
		if err := s.compareTold(i, nodes.Absent, zktest.Node{}); err != nil {
			return err
		}
	}
	return s.compareMembers(want)
}

// compareMembers compares what the onlooker was told last.
func (s *stage) compareMembers(standing []int) error {
	if s.onlooker == nil {
		return nil
	}
	var want []string
	for _, i := range standing {
		want = append(want, fmt.Sprintf("m%d=%s", i, text(i, s.paper.gen[i])))
	}
	s.onlooker.mu.Lock()
	defer s.onlooker.mu.Unlock()
	all, err := s.onlooker.all, s.onlooker.err
	if err != nil || len(all) == 0 || all[len(all)-1] != strings.Join(want, " ") {
		return fmt.Errorf("the onlooker was told %q, by the rule %q: %w", all, want, err)
	}
	s.onlooker.all = all[len(all)-1:]
	return nil
}

// compareShared compares what stands with the rule, where all objects share a path.
func (s *stage) compareShared(call string, before paper) error {
	p := &s.paper
	node, there := s.Srv.Node(s.path())
	if there != (p.owner >= 0) || len(s.Srv.Children(s.dir)) != standing(there) {
		return fmt.Errorf("a node stands: %v, by the rule %v", there, p.owner >= 0)
	}
	if there && p.kind.ephemeral() {
		var by, gen int
		_, _ = fmt.Sscanf(string(node.Data), "%d.%d", &by, &gen) // compared below
		if p.free && slices.Contains(p.wanting(), by) {
			p.free = false
			p.owns(by)
		}
		if string(node.Data) != text(p.owner, p.gen[p.owner]) {
			return fmt.Errorf("the node has %q, by the rule %q", node.Data, text(p.owner, p.gen[p.owner]))
		}
		if c := s.clients[p.kind.clientOf(p.owner)]; node.Stat.EphemeralOwner != s.SessionID(c) {
			return fmt.Errorf("the node is of session %#x, by the rule of object %d", node.Stat.EphemeralOwner, p.owner)
		}
	} else if there {
		if err := s.comparePersistent(call, before, node); err != nil {
			return err
		}
	}
	if before.owner >= 0 && before.owner == p.owner && !p.remade(call, p.owner) && node.Stat.Czxid != s.czxid && !p.free {
		return errors.New("the node was made again without a need")
	}
	s.czxid = node.Stat.Czxid
	for i, at := range p.at[:p.kind.objects] {
		want := nodes.Absent
		switch {
		case at == live && (p.owner == i || !p.kind.ephemeral()):
			want = nodes.Ours
		case at == live, at == waits:
			want = nodes.Foreign
		case at == removed, at == closed && errors.Is(s.objects[i].Status().Err, nodes.ErrRemoved):
			want = nodes.Removed
		}
		if err := s.compareTold(i, want, node); err != nil {
			return err
		}
	}
	return nil
}

// comparePersistent checks a persistent node, which all objects write. The last call that
// gives data decides, unless the node was made again.
func (s *stage) comparePersistent(call string, before paper, node zktest.Node) error {
	p := &s.paper
	want := []string{s.data}
	if call == "delete" {
		want = nil
	}
	for _, i := range p.wanting() {
		switch {
		case call == fmt.Sprint("set ", i), call == fmt.Sprint("start ", i) && before.at[i] == fresh:
			want = []string{text(i, p.gen[i])}
		case p.free, call == "delete", before.owner != p.owner:
			want = append(want, text(i, p.gen[i]))
		}
	}
	if s.data = string(node.Data); !slices.Contains(want, s.data) {
		return fmt.Errorf("the node has %q, by the rule one of %q", node.Data, want)
	}
	return nil
}

// compareTold compares what an object tells, and which of its calls have returned.
func (s *stage) compareTold(i int, want nodes.State, node zktest.Node) error {
	o, at := s.objects[i], s.paper.at[i]
	now := o.Status()
	if now.State != want || want == nodes.Ours && now.Czxid != node.Stat.Czxid {
		return fmt.Errorf("object %d tells %+v, by the rule %v of czxid %d", i, now, want, node.Stat.Czxid)
	}
	if err := o.compareStart(at); err != nil {
		return fmt.Errorf("object %d: %w", i, err)
	}
	if err := o.compareSets(want, at); err != nil {
		return fmt.Errorf("object %d: %w", i, err)
	}
	return nil
}

// end closes what is left, and says what remains.
func (s *stage) end() error {
	s.leave()
	for i, o := range s.objects {
		if err := o.Close(); err != nil {
			return fmt.Errorf("object %d: %w", i, err)
		}
	}
	time.Sleep(time.Second) // a client gives its watches back in the background
	synctest.Wait()
	if all := s.Srv.Children(s.dir); len(all) > 0 {
		return fmt.Errorf("left behind: %v", all)
	}
	for _, w := range s.Srv.Watches() {
		if strings.HasPrefix(w.Path, s.dir) {
			return fmt.Errorf("a watch of %s is left", w.Path)
		}
	}
	for i, o := range s.objects {
		for _, done := range o.sets {
			select {
			case <-done:
			default:
				return fmt.Errorf("a Set of object %d does not return after Close", i)
			}
		}
	}
	return nil
}

func standing(there bool) int {
	if there {
		return 1
	}
	return 0
}
