package zkcontainer

import (
	"context"
	"io"
	"net/netip"
	"strings"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// FirstRequest makes a session and one request with nothing between that tries again.
func FirstRequest(ctx context.Context, c *Container) error { return c.serves(ctx) }

// Left returns the containers, volumes and networks that the engine still has of an ensemble.
func Left(ctx context.Context, e *Ensemble) ([]string, error) {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	defer func() { _ = docker.Close() }()
	mine := client.Filters{}.Add("label", Label+"="+e.run.label)
	containers, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: mine})
	if err != nil {
		return nil, err
	}
	var left []string
	for _, c := range containers.Items {
		left = append(left, "container "+c.ID)
		for _, m := range c.Mounts {
			left = append(left, "volume "+m.Name)
		}
	}
	networks, err := docker.NetworkList(ctx, client.NetworkListOptions{Filters: mine})
	for _, n := range networks.Items {
		left = append(left, "network "+n.Name)
	}
	return left, err
}

// Still returns those of the names, as Left gives them, that the engine still has.
func Still(ctx context.Context, names []string) (still []string, err error) {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	defer func() { _ = docker.Close() }()
	for _, name := range names {
		var err error
		kind, id, _ := strings.Cut(name, " ")
		switch kind {
		case "container":
			_, err = docker.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		case "volume":
			_, err = docker.VolumeInspect(ctx, id, client.VolumeInspectOptions{})
		case "network":
			_, err = docker.NetworkInspect(ctx, id, client.NetworkInspectOptions{})
		}
		if err == nil {
			still = append(still, name)
		} else if present(err) != nil {
			return still, err
		}
	}
	return still, nil
}

// Advised is the error with what to do about it.
func Advised(err error) error { return advised(err) }

// Speak sends a four-letter word to an address.
func Speak(ctx context.Context, addr, word string) (string, error) { return speak(ctx, addr, word) }

// Requests returns what the engine would be asked for, for each of n members, if their first
// ports were taken.
func Requests(n int, opts ...testcontainers.ContainerCustomizer) ([]*testcontainers.GenericContainerRequest, error) {
	set, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	r := &run{label: "test", set: set, opts: opts, host: published(set.host)}
	r.peers = subnet{name: "peers", prefix: netip.MustParsePrefix("10.0.0.0/24")}
	e := newEnsemble(context.Background(), r, n)
	var all []*testcontainers.GenericContainerRequest
	if err := r.makeKeys(n); err != nil {
		return nil, err
	}
	for _, c := range e.members {
		var req *testcontainers.GenericContainerRequest
		for attempt := range 2 {
			c.ports = map[int]int{clientPort: firstPort + 10*attempt + c.id}
			req = &testcontainers.GenericContainerRequest{Started: true}
			for _, o := range c.customizers(nil) {
				if err := o.Customize(req); err != nil {
					return nil, err
				}
			}
			for _, f := range req.Files {
				if attempt == 0 && f.Reader != nil {
					_, _ = io.Copy(io.Discard, f.Reader)
				}
			}
		}
		all = append(all, req)
	}
	return all, nil
}

// Fakes is an ensemble of these containers of an engine, with servers at these ports of this
// machine.
func Fakes(ctx context.Context, docker client.APIClient, servers []testcontainers.Container, ports []int) *Ensemble {
	set, _ := newSettings(nil)
	e := newEnsemble(ctx, &run{label: "test", set: set, docker: docker, host: "127.0.0.1"}, len(servers))
	e.run.peers = subnet{name: "peers", prefix: netip.MustParsePrefix("10.0.0.0/24")}
	for i, c := range e.members {
		c.Container, c.ports = servers[i], map[int]int{clientPort: ports[i]}
	}
	return e
}

// Fill creates the chroot and the initial data of the options.
func Fill(ctx context.Context, e *Ensemble, opts ...testcontainers.ContainerCustomizer) (err error) {
	if e.run.set, err = newSettings(opts); err != nil {
		return err
	}
	return e.populate(ctx)
}

// Guarded is what StartEnsemble does for a start that makes nothing: its context and its end.
func Guarded(ctx context.Context) (start context.Context, end func()) {
	start, g := guarded(ctx)
	g.made(nil)
	return start, g.done
}

// Network makes the network between the members.
func Network(ctx context.Context, e *Ensemble) error { return e.run.newSubnet(ctx) }
