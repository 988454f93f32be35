package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

// Docker gives a container that is started again another port if it may choose. So every
// member has fixed ones. They lie below the range that kernels take for outgoing
// connections and Docker for its own choice, so that they are still free later.
const (
	firstPort    = 20000
	ports        = 12000
	portAttempts = 5
)

// create makes and starts the member's container. A port can be taken before the engine
// binds it, so it tries some.
func (c *Container) create(ctx context.Context) error {
	var last error
	for range portAttempts {
		if err := c.choosePorts(ctx); err != nil {
			return err
		}
		made, err := c.attempt(ctx)
		if made != nil {
			c.Container = made
		}
		if err == nil {
			return nil
		}
		last = fmt.Errorf("member %d: %w", c.id, advised(err))
		if !portTaken(err) || made == nil {
			break
		}
		if err := made.Terminate(ctx, testcontainers.StopTimeout(0)); err != nil {
			return errors.Join(last, err)
		}
		c.Container = nil
	}
	return last
}

// attempt makes and starts a container. Until the engine is asked for it, the end of ctx
// ends the attempt, as an image can take long. From then on a limit of its own does: of a
// request that was given up the engine may make something afterwards. What the attempt begins
// and leaves to run, such as the caller's consumers of the log, goes on after it.
func (c *Container) attempt(ctx context.Context) (*testcontainers.DockerContainer, error) {
	whole, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stop()
	var limit *time.Timer
	final := func(context.Context, testcontainers.ContainerRequest) error {
		if !stop() {
			return context.Cause(ctx)
		}
		limit = time.AfterFunc(requestLimit, func() { cancel(errSlowEngine) })
		return nil
	}
	made, err := testcontainers.Run(whole, c.run.img, c.customizers(final)...)
	if limit != nil {
		limit.Stop()
	}
	if err != nil {
		if why := context.Cause(whole); why != nil && !errors.Is(err, why) {
			err = fmt.Errorf("%w: %w", why, err)
		}
		cancel(err)
	}
	return made, err
}

// errSlowEngine is why a start gives up on the engine.
var errSlowEngine = fmt.Errorf("the engine has not made and started the container in %v", requestLimit)

// advised adds what to do about a failure that is not this package's.
func advised(err error) error {
	if err == nil || !strings.Contains(err.Error(), "reaper:") {
		return err
	}
	return fmt.Errorf("%w (testcontainers cannot start its reaper, which removes what a killed process leaves: "+
		"make its image available and its port reachable, or set TESTCONTAINERS_RYUK_DISABLED=true)", err)
}

func portTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "already allocated") || strings.Contains(text, "address already in use")
}

// customizers are this package's part of the request, the caller's, and what must hold
// over them.
func (c *Container) customizers(final testcontainers.ContainerRequestHook) []testcontainers.ContainerCustomizer {
	all := []testcontainers.ContainerCustomizer{
		testcontainers.WithEntrypoint("/bin/bash", configDir+"start.sh"),
		testcontainers.WithCmd(),
		testcontainers.WithEnv(map[string]string{"JVMFLAGS": c.run.set.jvmFlags(), "JMXDISABLE": "true"}),
		testcontainers.CustomizeRequestOption(c.addFiles),
	}
	all = append(all, c.run.opts...)
	return append(all, testcontainers.CustomizeRequestOption(c.finish),
		testcontainers.WithAdditionalLifecycleHooks(c.hooks(final)))
}

func (c *Container) addFiles(req *testcontainers.GenericContainerRequest) error {
	req.Files = append(req.Files, c.run.set.files(c.id, c.run.addresses(len(c.ensemble.members)))...)
	return nil
}

// addresses are those of the members among themselves, nil for one.
func (r *run) addresses(n int) []string {
	if n == 1 {
		return nil
	}
	var all []string
	for id := 1; id <= n; id++ {
		all = append(all, r.peers.address(id).String())
	}
	return all
}

// finish sets what the caller's options must not undo.
func (c *Container) finish(req *testcontainers.GenericContainerRequest) error {
	if !req.Started || req.Reuse {
		return errors.New("WithNoStart and WithReuseByName do not work here: a start waits until the servers serve, on ports of its own")
	}
	if req.Env == nil {
		req.Env = map[string]string{}
	}
	if flags := c.run.set.jvmFlags(); req.Env["JVMFLAGS"] != flags {
		req.Env["JVMFLAGS"] = flags + " " + req.Env["JVMFLAGS"]
	}
	req.LifecycleHooks = slices.Clip(req.LifecycleHooks) // others append to them too
	if err := c.run.readFiles(req); err != nil {
		return err
	}
	if req.Labels == nil {
		req.Labels = map[string]string{}
	}
	req.Labels[Label] = c.run.label
	for _, nw := range req.Networks {
		if req.NetworkAliases == nil {
			req.NetworkAliases = map[string][]string{}
		}
		if names := req.NetworkAliases[nw]; !slices.Contains(names, alias(c.id)) {
			req.NetworkAliases[nw] = append(slices.Clone(names), alias(c.id))
		}
	}
	bindings := network.PortMap{}
	for inside, port := range c.ports {
		p := network.MustParsePort(strconv.Itoa(inside) + "/tcp")
		bindings[p] = []network.PortBinding{{HostIP: c.run.bind(), HostPort: strconv.Itoa(port)}}
		if !slices.Contains(req.ExposedPorts, p.String()) {
			req.ExposedPorts = append(slices.Clone(req.ExposedPorts), p.String())
		}
	}
	changeHost := req.HostConfigModifier
	req.HostConfigModifier = func(h *container.HostConfig) {
		if changeHost != nil {
			changeHost(h)
		}
		if h.PortBindings == nil {
			h.PortBindings = network.PortMap{}
		}
		maps.Copy(h.PortBindings, bindings)
	}
	changeConfig := req.ConfigModifier
	req.ConfigModifier = func(cfg *container.Config) {
		cfg.Hostname = alias(c.id)
		if changeConfig != nil {
			changeConfig(cfg)
		}
	}
	return nil
}

// hooks run final before the engine is asked for the container, and put it into the network
// between the members before it starts.
func (c *Container) hooks(final testcontainers.ContainerRequestHook) testcontainers.ContainerLifecycleHooks {
	h := testcontainers.ContainerLifecycleHooks{PreCreates: []testcontainers.ContainerRequestHook{final}}
	if len(c.ensemble.members) > 1 {
		h.PostCreates = []testcontainers.ContainerHook{func(ctx context.Context, made testcontainers.Container) error {
			return c.run.connect(ctx, c.id, made.GetContainerID())
		}}
	}
	return h
}

// choosePorts takes a port for each one inside.
func (c *Container) choosePorts(ctx context.Context) error {
	c.ports = map[int]int{}
	for _, inside := range c.run.set.ports() {
		port, err := c.run.freePort(ctx)
		if err != nil {
			return err
		}
		c.ports[inside] = port
	}
	return nil
}

// freePort draws a port. If the engine publishes it on this machine, nothing listens there.
func (r *run) freePort(ctx context.Context) (int, error) {
	var last error
	for range 50 {
		port := firstPort + rand.IntN(ports)
		if !loopback(r.host) {
			return port, nil
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(r.host, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}
