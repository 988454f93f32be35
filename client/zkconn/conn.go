package zkconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/retry"
)

// Conn has the methods of [zk.Conn], over a [client.Client]. It is safe for concurrent use.
type Conn struct {
	c       *client.Client
	patient *client.Client // waits for a server as long as the Conn is open

	ctx    context.Context //nolint:containedctx // the life of the Conn: its methods take none
	cancel context.CancelFunc

	mu      sync.Mutex // guards the rest
	closing bool
	wg      sync.WaitGroup
}

// eventRoom is how many session events wait for their reader, as in go-zookeeper.
const eventRoom = 6

// New returns a Conn over c, and a channel with session events as [zk.Connect] does. An event
// for which the channel has no room is dropped. The channel is closed when ctx ends, or after
// [Conn.Close]; calls then fail with [zk.ErrConnectionClosed]. A nil ctx panics.
func New(ctx context.Context, c *client.Client) (*Conn, <-chan zk.Event) {
	conn := &Conn{c: c, patient: c.Retrying(retry.Default())}
	conn.ctx, conn.cancel = context.WithCancel(ctx)
	events := make(chan zk.Event, eventRoom)
	conn.begin(func() { // ends with the Conn, or the client
		defer close(events)
		for change := range c.States(conn.ctx) {
			for _, state := range states(change.State) {
				select {
				case events <- zk.Event{Type: zk.EventSession, State: state, Server: conn.Server()}:
				default: // as go-zookeeper does
				}
			}
		}
	})
	return conn, events
}

// begin starts a goroutine that Close waits for, unless the Conn is closed.
func (c *Conn) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Go(f)
	return true
}

// states are those of go-zookeeper that a change of the client stands for, the last one lasts.
func states(s client.State) []zk.State {
	switch s {
	case client.Connected:
		return []zk.State{zk.StateConnected, zk.StateHasSession}
	case client.Suspended:
		return []zk.State{zk.StateDisconnected, zk.StateConnecting}
	case client.Lost:
		return []zk.State{zk.StateExpired}
	case client.Closed:
		return []zk.State{zk.StateDisconnected}
	default:
		return []zk.State{zk.StateConnecting}
	}
}

// Close ends the Conn: watches get [zk.EventNotWatching] with [zk.ErrClosing]. It waits for the
// goroutines of the Conn. The client stays open: whoever connected it closes it.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.cancel()
	c.wg.Wait()
}

// State is the state of the client, or [zk.StateDisconnected] after Close.
func (c *Conn) State() zk.State {
	if c.ctx.Err() != nil {
		return zk.StateDisconnected
	}
	all := states(c.c.State())
	return all[len(all)-1]
}

// SessionID is the id of the present session, 0 if there is none.
func (c *Conn) SessionID() int64 {
	if raw := c.c.Conn(); raw != nil {
		return raw.SessionID()
	}
	return 0
}

// Server is the server to which the present session is or was connected, "" without a session.
func (c *Conn) Server() string {
	if raw := c.c.Conn(); raw != nil {
		return raw.Server()
	}
	return ""
}

// SetLogger does nothing: see client.WithLogger.
func (c *Conn) SetLogger(zk.Logger) {}

// AddAuth is [client.Client.AddAuth]: the credentials are those of the client, on every later
// connection.
func (c *Conn) AddAuth(scheme string, auth []byte) error {
	return native(c.c.AddAuth(c.ctx, scheme, string(auth)))
}

// Get is that of [zk.Conn].
func (c *Conn) Get(path string) ([]byte, *zk.Stat, error) {
	data, stat, err := c.c.Get(c.ctx, path)
	stat, err = answered(stat, err)
	return data, stat, err
}

// Children is that of [zk.Conn].
func (c *Conn) Children(path string) ([]string, *zk.Stat, error) {
	names, stat, err := c.c.Children(c.ctx, path)
	stat, err = answered(stat, err)
	return names, stat, err
}

// Exists is that of [zk.Conn].
func (c *Conn) Exists(path string) (bool, *zk.Stat, error) {
	found, stat, err := c.c.Exists(c.ctx, path)
	stat, err = answered(stat, err)
	return found, stat, err
}

// GetACL is that of [zk.Conn].
func (c *Conn) GetACL(path string) ([]zk.ACL, *zk.Stat, error) {
	acl, stat, err := c.c.GetACL(c.ctx, path)
	stat, err = answered(stat, err)
	return acl, stat, err
}

// SetACL is that of [zk.Conn].
func (c *Conn) SetACL(path string, acl []zk.ACL, version int32) (*zk.Stat, error) {
	return answered(c.c.SetACL(c.ctx, path, acl, version))
}

// Set is that of [zk.Conn].
func (c *Conn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	return answered(c.c.Set(c.ctx, path, data, version))
}

// Delete is that of [zk.Conn].
func (c *Conn) Delete(path string, version int32) error {
	err := native(c.c.Delete(c.ctx, path, version))
	if errors.Is(err, zk.ErrInvalidFlags) { // "/", which the client does not send
		return zk.ErrBadArguments
	}
	return err
}

// Sync is that of [zk.Conn].
func (c *Conn) Sync(path string) (string, error) {
	if err := c.c.Sync(c.ctx, path); err != nil {
		return "", native(err)
	}
	return path, nil
}

// modes are the options of the flags.
func modes(flags int32) ([]client.CreateOption, error) {
	switch flags {
	case zk.FlagPersistent:
		return nil, nil
	case zk.FlagEphemeral:
		return []client.CreateOption{client.Ephemeral()}, nil
	case zk.FlagSequence:
		return []client.CreateOption{client.Sequential()}, nil
	case zk.FlagEphemeralSequential:
		return []client.CreateOption{client.Ephemeral(), client.Sequential()}, nil
	case zk.FlagContainer:
		return []client.CreateOption{client.Container()}, nil
	case zk.FlagTTL, zk.FlagPersistentSequentialWithTTL:
		return nil, fmt.Errorf("Create with TTL flag disallowed: %w", zk.ErrInvalidFlags)
	default:
		return nil, fmt.Errorf("invalid flag value: [%v]", flags)
	}
}

func (c *Conn) create(path string, data []byte, acl []zk.ACL, opts ...client.CreateOption) (string, error) {
	made, err := c.c.Create(c.ctx, path, data, append(opts, client.ACL(acl...))...)
	return made, native(err)
}

// Create is that of [zk.Conn].
func (c *Conn) Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	opts, err := modes(flags)
	if err != nil {
		return "", err
	}
	return c.create(path, data, acl, opts...)
}

// CreateContainer is that of [zk.Conn].
func (c *Conn) CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error) {
	if flag != zk.FlagContainer {
		return "", fmt.Errorf("CreateContainer requires container flag: %w", zk.ErrInvalidFlags)
	}
	return c.create(path, data, acl, client.Container())
}

// CreateTTL is that of [zk.Conn].
func (c *Conn) CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error) {
	switch flag {
	case zk.FlagTTL:
		return c.create(path, data, acl, client.TTL(ttl))
	case zk.FlagPersistentSequentialWithTTL:
		return c.create(path, data, acl, client.TTL(ttl), client.Sequential())
	default:
		return "", fmt.Errorf("CreateTTL requires TTL flag: %w", zk.ErrInvalidFlags)
	}
}

// CreateProtectedEphemeralSequential is that of [zk.Conn]. It finds its node after a lost
// answer, and checks that the node is of the session.
func (c *Conn) CreateProtectedEphemeralSequential(path string, data []byte, acl []zk.ACL) (string, error) {
	return c.create(path, data, acl, client.Protected(), client.Ephemeral(), client.Sequential())
}

// errNotRun is what go-zookeeper says of the parts behind the one that was refused.
var errNotRun = errors.New("unknown error: -2")

// Multi is that of [zk.Conn].
func (c *Conn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	parts := make([]client.Op, len(ops))
	for i, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			opts, err := modes(op.Flags)
			if err != nil {
				return nil, err
			}
			parts[i] = client.CreateOp(op.Path, op.Data, append(opts, client.ACL(op.Acl...))...)
		case *zk.SetDataRequest:
			parts[i] = client.SetOp(op.Path, op.Data, op.Version)
		case *zk.DeleteRequest:
			parts[i] = client.DeleteOp(op.Path, op.Version)
		case *zk.CheckVersionRequest:
			parts[i] = client.CheckOp(op.Path, op.Version)
		default:
			return nil, fmt.Errorf("unknown operation type %T", op)
		}
	}
	results, err := c.c.Multi(c.ctx, parts...)
	var refused *client.MultiError
	if err != nil && !errors.As(err, &refused) {
		return nil, native(err)
	}
	said := make([]zk.MultiResponse, len(ops))
	for i := range said {
		switch {
		case refused == nil:
			said[i] = zk.MultiResponse{Stat: results[i].Stat, String: results[i].Path}
		case i == refused.Index:
			said[i].Error = native(refused.Err)
		case i > refused.Index:
			said[i].Error = errNotRun
		}
	}
	return said, native(err)
}

// IncrementalReconfig is [client.Client.Reconfigure] with joining and leaving. The version is
// that of the configuration, -1 for any. The stat has its new version as Mzxid, and is otherwise
// as ZooKeeper answers it: empty, with Version -1.
func (c *Conn) IncrementalReconfig(joining, leaving []string, version int64) (*zk.Stat, error) {
	change := client.Reconfiguration{Join: joining}
	for _, id := range leaving {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return new(zk.Stat), zk.ErrBadArguments
		}
		change.Leave = append(change.Leave, n)
	}
	return c.reconfigure(change, version)
}

// Reconfig is [client.Client.Reconfigure] with all members. Version and stat are those of
// [Conn.IncrementalReconfig].
func (c *Conn) Reconfig(members []string, version int64) (*zk.Stat, error) {
	return c.reconfigure(client.Reconfiguration{Members: members}, version)
}

func (c *Conn) reconfigure(change client.Reconfiguration, version int64) (*zk.Stat, error) {
	switch {
	case version > 0:
		change.IfVersion = version
	case version == 0: // which the client takes for any, and no configuration has
		return new(zk.Stat), zk.ErrBadVersion
	}
	now, err := c.c.Reconfigure(c.ctx, change)
	if errors.Is(err, zk.ErrInvalidFlags) { // what the client does not send
		err = zk.ErrBadArguments
	}
	if err != nil {
		return answered(nil, err)
	}
	return &zk.Stat{Mzxid: now.Version, Version: -1}, nil
}
