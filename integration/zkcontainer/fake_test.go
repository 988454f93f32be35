package zkcontainer_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

var errLost = errors.New("the answer is lost")

// fakeEngine is what the tests need of an engine. What is in lost is done, and its answer lost.
type fakeEngine struct {
	client.APIClient

	mu        sync.Mutex
	connected bool
	lost      map[string]bool
	noRange   error // of every network
	asked     int   // for a network
	busy      int   // how many pauses fail, as on a busy machine
}

func (f *fakeEngine) ContainerPause(context.Context, string, client.ContainerPauseOptions) (client.ContainerPauseResult, error) {
	if f.busy--; f.busy >= 0 {
		return client.ContainerPauseResult{}, errors.New("OCI runtime pause failed: unable to freeze: unknown")
	}
	return client.ContainerPauseResult{}, nil
}

func (f *fakeEngine) NetworkCreate(context.Context, string, client.NetworkCreateOptions) (client.NetworkCreateResult, error) {
	f.asked++
	return client.NetworkCreateResult{}, f.noRange
}

func (f *fakeEngine) NetworkDisconnect(context.Context, string, client.NetworkDisconnectOptions) (client.NetworkDisconnectResult, error) {
	return client.NetworkDisconnectResult{}, f.connect("disconnect", false)
}

func (f *fakeEngine) NetworkConnect(context.Context, string, client.NetworkConnectOptions) (client.NetworkConnectResult, error) {
	return client.NetworkConnectResult{}, f.connect("connect", true)
}

func (f *fakeEngine) connect(what string, on bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.connected == on {
		return errors.New("it is " + what + "ed already")
	}
	f.connected = on
	if f.lost[what] {
		delete(f.lost, what)
		return errLost
	}
	return nil
}

func (f *fakeEngine) ContainerInspect(context.Context, string, client.ContainerInspectOptions) (client.ContainerInspectResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var r client.ContainerInspectResult
	r.Container.NetworkSettings = &container.NetworkSettings{Networks: map[string]*network.EndpointSettings{"bridge": {}}}
	if f.connected {
		r.Container.NetworkSettings.Networks["peers"] = &network.EndpointSettings{}
	}
	return r, nil
}

func (f *fakeEngine) ContainerKill(context.Context, string, client.ContainerKillOptions) (client.ContainerKillResult, error) {
	return client.ContainerKillResult{}, nil
}

func (f *fakeEngine) ContainerWait(ctx context.Context, _ string, _ client.ContainerWaitOptions) client.ContainerWaitResult {
	failed := make(chan error, 1)
	context.AfterFunc(ctx, func() { failed <- ctx.Err() })
	return client.ContainerWaitResult{Result: make(chan container.WaitResponse), Error: failed}
}

func (f *fakeEngine) ContainerLogs(context.Context, string, client.ContainerLogsOptions) (client.ContainerLogsResult, error) {
	return nil, errors.New("no log")
}

func (f *fakeEngine) ContainerList(context.Context, client.ContainerListOptions) (client.ContainerListResult, error) {
	return client.ContainerListResult{}, nil
}

func (f *fakeEngine) NetworkList(context.Context, client.NetworkListOptions) (client.NetworkListResult, error) {
	return client.NetworkListResult{}, nil
}

func (f *fakeEngine) Close() error { return nil }

// fakeContainer is a container whose server is elsewhere.
type fakeContainer struct {
	testcontainers.Container

	mu      sync.Mutex
	ended   bool
	removed bool
	stopped []time.Duration
	files   map[string]string
}

func (*fakeContainer) GetContainerID() string { return "fake" }

func (f *fakeContainer) State(context.Context) (*container.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.removed {
		return nil, errdefs.ErrNotFound.WithMessage("no such container")
	}
	return &container.State{Running: !f.ended, ExitCode: 3}, nil
}

func (*fakeContainer) Start(context.Context) error { return nil }

func (f *fakeContainer) Stop(_ context.Context, timeout *time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if timeout != nil {
		f.stopped = append(f.stopped, *timeout)
	}
	return nil
}

func (*fakeContainer) Terminate(context.Context, ...testcontainers.TerminateOption) error { return nil }

func (f *fakeContainer) CopyToContainer(_ context.Context, content []byte, path string, _ int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = map[string]string{}
	}
	f.files[path] = string(content)
	return nil
}

func (f *fakeContainer) file(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files[path]
}

// fakeServer answers the word srvr, and requests of a session by what session says: with no
// answer it closes the connection.
type fakeServer struct {
	mode    string
	session func(op int32, body []byte) []byte
}

// listen returns the port that the server listens at until the test ends.
func (s fakeServer) listen(t *testing.T) int {
	t.Helper()
	l := must(new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0"))(t)
	var group sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		group.Wait()
	})
	group.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			group.Go(func() {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				s.serve(conn)
			})
		}
	})
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	return addr.Port
}

const connectOp = 0 // the handshake, which has no number of its own

func (s fakeServer) serve(conn net.Conn) {
	first := true
	for {
		var head [4]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		if string(head[:]) == "srvr" {
			if s.mode != "" {
				_, _ = io.WriteString(conn, "Mode: "+s.mode+"\n")
			}
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[:]))
		if len(body) > 1<<20 { // as with jute.maxbuffer
			return
		}
		if _, err := io.ReadFull(conn, body); err != nil || s.session == nil {
			return
		}
		var answer []byte
		if first {
			answer = s.session(connectOp, body)
		} else if answer = s.session(int32(binary.BigEndian.Uint32(body[4:])), body[8:]); answer != nil {
			answer = append(append(body[:4:4], make([]byte, 8)...), answer...) // xid, zxid
		}
		first = false
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// handshake is the answer to one, with a session of this timeout; without one the session is no
// more.
func handshake(milliseconds uint32) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), milliseconds)
	b = binary.BigEndian.AppendUint32(append(b, make([]byte, 8)...), 16)
	return append(b, make([]byte, 16)...)
}

// code is the answer to a request.
func code(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// fakes is an ensemble of fakes, whose servers are these.
func fakes(t *testing.T, engine *fakeEngine, servers ...fakeServer) (*zkcontainer.Ensemble, []*fakeContainer) {
	t.Helper()
	var all []*fakeContainer
	var containers []testcontainers.Container
	var ports []int
	for _, s := range servers {
		f := &fakeContainer{}
		all, containers, ports = append(all, f), append(containers, f), append(ports, s.listen(t))
	}
	return zkcontainer.Fakes(t.Context(), engine, containers, ports), all
}

// wants reports whether the error is there and has this text.
func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %q", err, text)
	}
}
