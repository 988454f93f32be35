// Package good says how calls have ended, or hands them on.
package good

import (
	"context"
	"errors"
	"net/http"

	"github.com/docent-go/docent/recipes/discovery"
)

func send(ctx context.Context, address string) error { return ctx.Err() }

func told(ctx context.Context, orders *discovery.ServiceProvider) error {
	call, err := orders.Pick(ctx)
	if err != nil {
		return err
	}
	err = send(ctx, call.Instance.HostPort())
	call.Done(err)
	return err
}

func deferred(ctx context.Context, orders *discovery.ServiceProvider) (err error) {
	call, err := orders.Pick(ctx)
	if err != nil {
		return err
	}
	defer func() { call.Done(err) }()
	return send(ctx, call.Instance.HostPort())
}

func tries(ctx context.Context, orders *discovery.ServiceProvider) error {
	var tried []string
	for {
		call, err := orders.Pick(ctx, tried...)
		if errors.Is(err, discovery.ErrNoInstance) {
			return err
		} else if err != nil {
			continue
		}
		if call.Instance.Zone == "far" {
			call.Done(context.Canceled)
			tried = append(tried, call.Instance.Node)
			continue
		}
		err = send(ctx, call.Instance.HostPort())
		if call.Done(err); err == nil {
			return nil
		}
	}
}

func returned(ctx context.Context, orders *discovery.ServiceProvider) (*discovery.Call, error) {
	call, err := orders.Pick(ctx)
	if err != nil {
		return nil, err
	}
	return call, nil
}

type attempt struct{ call *discovery.Call }

func stored(ctx context.Context, orders *discovery.ServiceProvider) (a attempt, err error) {
	a.call, err = orders.Pick(ctx)
	return a, err
}

func kept(ctx context.Context, orders *discovery.ServiceProvider) (*attempt, error) {
	call, err := orders.Pick(ctx)
	if err != nil {
		return nil, err
	}
	return &attempt{call: call}, nil
}

func passed(ctx context.Context, orders *discovery.ServiceProvider, use func(*discovery.Call) error) error {
	call, err := orders.Pick(ctx)
	if err != nil {
		return err
	}
	return use(call)
}

func value(ctx context.Context, orders *discovery.ServiceProvider) (string, func(error), error) {
	call, err := orders.Pick(ctx)
	if err != nil {
		return "", nil, err
	}
	return call.Instance.HostPort(), call.Done, nil
}

func beside(ctx context.Context, orders *discovery.ServiceProvider, req *http.Request) error {
	call, err := orders.Pick(ctx)
	if err != nil {
		return err
	}
	go func() {
		_, err := http.DefaultClient.Do(req)
		call.Done(err)
	}()
	return nil
}

// draw is no provider.
type draw struct{}

func (draw) Pick(context.Context) (*int, error) { return nil, nil }

func another(ctx context.Context, d draw) error {
	_, err := d.Pick(ctx)
	return err
}

func meant(ctx context.Context, orders *discovery.ServiceProvider) (string, error) {
	call, err := orders.Pick(ctx) //docentvet:ignore the answer is only shown
	if err != nil {
		return "", err
	}
	return call.Instance.HostPort(), nil
}

func outside(ctx context.Context, orders *discovery.ServiceProvider, retry func(func() error) error) error {
	var call *discovery.Call
	err := retry(func() (err error) {
		call, err = orders.Pick(ctx)
		return err
	})
	if err != nil {
		return err
	}
	call.Done(nil)
	return nil
}

func use(call *discovery.Call, err error) error {
	if err == nil {
		call.Done(nil)
	}
	return err
}

func used(ctx context.Context, orders *discovery.ServiceProvider) error { return use(orders.Pick(ctx)) }

// Last is no new call.
func (a *attempt) Last() (*discovery.Call, error) { return a.call, nil }

func last(a *attempt) error {
	_, err := a.Last()
	return err
}
