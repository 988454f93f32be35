// Package bad does not say how calls have ended.
package bad

import (
	"context"
	"errors"

	"github.com/docent-go/docent/recipes/discovery"
)

func send(ctx context.Context, address string) error { return ctx.Err() }

func never(ctx context.Context, orders *discovery.ServiceProvider) error {
	call, err := orders.Pick(ctx) // want `Done of call is not called on every path, so the provider counts it as one that still runs: the return in line 18 is reached without call.Done; give Done nil`
	if err != nil {
		return err
	}
	return send(ctx, call.Instance.HostPort())
}

func failed(ctx context.Context, orders *discovery.ServiceProvider) error {
	call, err := orders.Pick(ctx) // want `the return in line 27 is reached without call.Done`
	if err != nil {
		return err
	}
	if err := send(ctx, call.Instance.HostPort()); err != nil {
		return err
	}
	call.Done(nil)
	return nil
}

func skipped(ctx context.Context, orders *discovery.ServiceProvider) error {
	for {
		call, err := orders.Pick(ctx) // want `line 35 gives it another value without call.Done`
		switch {
		case errors.Is(err, discovery.ErrNoInstance):
			return nil
		case err != nil:
			return err
		case call.Instance.Zone == "far":
			continue
		}
		err = send(ctx, call.Instance.HostPort())
		call.Done(err)
		return err
	}
}

func dropped(ctx context.Context, orders *discovery.ServiceProvider) bool {
	orders.Pick(ctx)           // want `the call that Pick returns is dropped, so it counts as one that still runs`
	_, err := orders.Pick(ctx) // want `the call that Pick returns is dropped`
	return err == nil
}

func instance(ctx context.Context, orders *discovery.ServiceProvider) (*discovery.ServiceInstance, error) {
	call, err := orders.Pick(ctx) // want `Done of call is not called on every path`
	if err != nil {
		return nil, err
	}
	return call.Instance, nil
}

type picker interface {
	Pick(ctx context.Context, except ...string) (*discovery.Call, error)
}

func faked(ctx context.Context, p picker) (string, error) {
	call, err := p.Pick(ctx, "a") // want `Done of call is not called on every path`
	if err != nil {
		return "", err
	}
	_ = call
	return "", nil
}
