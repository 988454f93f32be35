package zkcontainer

import (
	"context"
	"strings"

	"github.com/moby/moby/client"
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

// Speak sends a four-letter word to an address.
func Speak(ctx context.Context, addr, word string) (string, error) { return speak(ctx, addr, word) }
