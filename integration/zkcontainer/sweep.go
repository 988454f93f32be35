package zkcontainer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// sweep closes the links and removes every container and network that carries the run's
// label, also one of which the engine's answer was lost. It may be repeated.
func (r *run) sweep(ctx context.Context) error {
	r.end(errTerminated)
	r.mu.Lock()
	links := r.links
	r.links, r.ended = nil, true
	r.mu.Unlock()
	for _, l := range links {
		l.Close()
	}
	mine := client.Filters{}.Add("label", Label+"="+r.label)
	var errs []error
	containers, err := r.docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: mine})
	errs = append(errs, err)
	for _, c := range containers.Items {
		_, err := r.docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		errs = append(errs, present(err))
	}
	networks, err := r.docker.NetworkList(ctx, client.NetworkListOptions{Filters: mine})
	errs = append(errs, err)
	for _, n := range networks.Items {
		_, err := r.docker.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		errs = append(errs, present(err))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("zkcontainer: remove what was made: %w", err)
	}
	return r.docker.Close()
}

// present drops the error that says that something is not there, or that somebody else is
// just removing it.
func present(err error) error {
	if errdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "is already in progress") {
		return nil
	}
	return err
}
