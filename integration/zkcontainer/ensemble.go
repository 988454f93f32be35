package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/testcontainers/testcontainers-go"
)

// Run starts one standalone server from the image and returns when it serves. Own
// options and those of testcontainers may be mixed; see the package's documentation for
// what it does not take.
//
// ctx bounds the start only. On an error the container is returned too, as far as it was
// made, so call [testcontainers.TerminateContainer] or [testcontainers.CleanupContainer]
// with it before looking at the error.
func Run(ctx context.Context, img string, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	e, err := RunEnsemble(ctx, img, 1, opts...)
	if e == nil {
		return nil, err
	}
	return e.members[0], err
}

// maxMembers is what the addresses of the peers' network suffice for.
const maxMembers = 9

// RunEnsemble starts n servers from the image, 1 to 9, and returns when one of them leads
// and every other follows, and each has answered a request. The servers start side by
// side. One server is standalone. Each option applies to every member, at the same time as to
// others, and again when a port was taken. So make a network before, with network.New of
// testcontainers and not by network.WithNewNetwork, which would make one for each.
//
// ctx bounds the start only. On an error the ensemble is returned too, as far as it was
// made, so call [Ensemble.Terminate] before looking at the error; it may be called on nil.
func RunEnsemble(ctx context.Context, img string, n int, opts ...testcontainers.ContainerCustomizer) (*Ensemble, error) {
	if n < 1 || n > maxMembers {
		return nil, fmt.Errorf("zkcontainer: an ensemble has 1 to %d members, not %d", maxMembers, n)
	}
	set, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: %w", err)
	}
	r, err := newRun(ctx, img, set, opts)
	if err != nil {
		return nil, fmt.Errorf("zkcontainer: %w", err)
	}
	e := newEnsemble(ctx, r, n)
	bounded, cancel := context.WithTimeout(ctx, set.startLimit)
	defer cancel()
	if err := e.start(bounded); err != nil {
		return e, fmt.Errorf("zkcontainer: start %s: %w", img, err)
	}
	return e, nil
}

func newEnsemble(ctx context.Context, r *run, n int) *Ensemble {
	e := &Ensemble{run: r}
	r.life, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	for id := 1; id <= n; id++ {
		e.members = append(e.members, newMember(e, id))
	}
	return e
}

func newMember(e *Ensemble, id int) *Container {
	c := &Container{id: id, run: e.run, ensemble: e, control: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancelCause(e.run.life)
	return c
}

// start makes all members side by side and waits for them together: none serves before
// there is a quorum.
func (e *Ensemble) start(ctx context.Context) error {
	if err := e.run.makeKeys(len(e.members)); err != nil {
		return fmt.Errorf("make keys: %w", err)
	}
	if len(e.members) > 1 {
		if err := e.run.newSubnet(ctx); err != nil {
			return err
		}
	}
	if err := e.each(func(c *Container) error { return c.create(ctx) }); err != nil {
		return err
	}
	if err := e.locate(ctx); errors.As(err, new(hopeless)) {
		return err
	} else if err != nil {
		return e.unreached(err)
	}
	if err := e.awaitFirst(ctx); errors.As(err, new(hopeless)) {
		return err
	} else if err != nil {
		return e.unreached(err)
	}
	return e.populate(ctx)
}

func (e *Ensemble) unreached(err error) error {
	return fmt.Errorf("%w (clients go to %s; if the engine publishes ports elsewhere, say where with WithHost or TESTCONTAINERS_HOST_OVERRIDE)", err, e.run.host)
}

// locate looks where the published ports are. In a container testcontainers takes the engine for
// that of the machine outside, but it can be in the same container.
func (e *Ensemble) locate(ctx context.Context) error {
	r := e.run
	if r.set.host != "" || loopback(r.host) {
		return nil
	}
	first := e.members[0]
	hosts := []string{r.host, "127.0.0.1"}
	return poll(ctx, func(ctx context.Context) error {
		asking, enough := context.WithCancel(ctx)
		defer enough()
		errs := make([]error, len(hosts))
		var group sync.WaitGroup
		for i, host := range hosts {
			group.Go(func() {
				answer, err := speak(asking, net.JoinHostPort(host, strconv.Itoa(first.ports[clientPort])), "srvr")
				if err == nil && answer == "" {
					err = errors.New("no answer")
				}
				if errs[i] = err; err == nil {
					enough()
				}
			})
		}
		group.Wait()
		for i, err := range errs {
			if err == nil {
				r.host = hosts[i]
				return nil
			}
		}
		return errors.Join(errors.Join(errs...), e.ended(ctx))
	})
}

// awaitFirst waits until all members serve, or one of them has ended.
func (e *Ensemble) awaitFirst(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) error {
		_, err := e.serving(ctx, e.members)
		if err == nil {
			return nil
		}
		return errors.Join(err, e.ended(ctx))
	})
}

// ended says which members have ended.
func (e *Ensemble) ended(ctx context.Context) error {
	return e.each(func(c *Container) error { return c.wrap("start", c.ended(ctx)) })
}

// Members returns all members in the order of their ids.
func (e *Ensemble) Members() []*Container { return slices.Clone(e.members) }

// Member returns the member with this id, counted from 1. It panics when there is none.
func (e *Ensemble) Member(id int) *Container { return e.members[id-1] }

// Servers returns the addresses of all members in the order of their ids, without the
// chroot of [WithChroot].
func (e *Ensemble) Servers() []string {
	addrs := make([]string, 0, len(e.members))
	for _, c := range e.members {
		addrs = append(addrs, c.Addr())
	}
	return addrs
}

// ConnectionString is the addresses of all members joined by commas, with the chroot of
// [WithChroot] behind them, as ZooKeeper's clients and Curator's connectString take it.
// The error is always nil; it is there because other modules of testcontainers have one.
func (e *Ensemble) ConnectionString(context.Context) (string, error) {
	return strings.Join(e.Servers(), ",") + e.run.set.chroot, nil
}

// Leader returns the member that says it leads or stands alone, waiting until there is
// one. With a deposed leader that has not noticed there may be two that say so; the
// first by id is returned. The error when ctx ends says what every member answered last. It
// fails at once after Terminate.
func (e *Ensemble) Leader(ctx context.Context) (*Container, error) {
	var leader *Container
	err := poll(ctx, func(ctx context.Context) error {
		if e.run.life.Err() != nil {
			return hopeless{context.Cause(e.run.life)}
		}
		var said []string
		for _, a := range ask(ctx, e.members) {
			if a.leads() {
				leader = a.member
				return nil
			}
			said = append(said, a.String())
		}
		return fmt.Errorf("no leader: %s", strings.Join(said, "; "))
	})
	return leader, err
}

// Followers returns the members that say they follow, without waiting.
func (e *Ensemble) Followers(ctx context.Context) []*Container {
	var followers []*Container
	for _, a := range ask(ctx, e.members) {
		if a.err == nil && a.role == Follower {
			followers = append(followers, a.member)
		}
	}
	return followers
}

// AwaitServing waits until one of these members leads and every other follows or
// observes, and each has answered a request of a session. It returns the leader. Without
// arguments it waits for all members; name those that are up when some are stopped or cut
// off. The error when ctx ends says what every member answered last. It fails at once when one
// was terminated.
func (e *Ensemble) AwaitServing(ctx context.Context, members ...*Container) (*Container, error) {
	if len(members) == 0 {
		members = e.members
	}
	var leader *Container
	err := poll(ctx, func(ctx context.Context) (err error) {
		leader, err = e.serving(ctx, members)
		return err
	})
	return leader, err
}

// serving returns the leader if all these members serve now.
func (e *Ensemble) serving(ctx context.Context, members []*Container) (*Container, error) {
	var leader *Container
	var said []string
	ready := true
	for _, a := range ask(ctx, members) {
		said = append(said, a.String())
		if errors.As(a.err, new(hopeless)) {
			return nil, a.err
		}
		switch {
		case a.err != nil || a.role == NotServing, a.leads() && leader != nil:
			ready = false
		case a.leads():
			leader = a.member
		}
	}
	if !ready || leader == nil {
		return nil, fmt.Errorf("not all serving: %s", strings.Join(said, "; "))
	}
	return leader, each(members, func(c *Container) error { return c.serves(ctx) })
}

// Heal ends every partition and pause. It tries all members and returns all errors.
func (e *Ensemble) Heal(ctx context.Context) error {
	return e.each(func(c *Container) error { return errors.Join(c.Unpause(ctx), c.Heal(ctx)) })
}

// Terminate closes the links, ends all members, and removes their containers, volumes and
// network, also those of a start that failed half-way. It may be repeated, and called on
// nil. After an error something may be left, and another call tries again.
func (e *Ensemble) Terminate(ctx context.Context, opts ...testcontainers.TerminateOption) error {
	if e == nil {
		return nil
	}
	e.run.end(errTerminated)
	err := e.each(func(c *Container) error { return c.terminate(ctx, opts) })
	return errors.Join(err, e.run.sweep(ctx))
}

// answer is what a member says it is.
type answer struct {
	member *Container
	role   Role
	err    error
}

func (a answer) leads() bool { return a.err == nil && (a.role == Leader || a.role == Standalone) }

func (a answer) String() string {
	if a.err != nil {
		return a.err.Error()
	}
	return fmt.Sprintf("server %d: %s", a.member.id, a.role)
}

// ask asks the members at the same time.
func ask(ctx context.Context, members []*Container) []answer {
	all := make([]answer, len(members))
	var group sync.WaitGroup
	for i, c := range members {
		group.Go(func() {
			role, err := c.Role(ctx)
			all[i] = answer{c, role, err}
		})
	}
	group.Wait()
	return all
}
