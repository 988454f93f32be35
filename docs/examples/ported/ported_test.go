package ported_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/docs/examples/ported"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

func start(t *testing.T, srv *zktest.Server, id string) (*ported.Service, *client.Client) {
	t.Helper()
	c, err := client.Connect(t.Context(), "zk", client.WithDialer(srv.Client(id).DialContext), client.WithLogger(slog.New(slog.DiscardHandler)))
	check(t, err)
	s, err := ported.New(t.Context(), c, id, 2)
	check(t, err)
	t.Cleanup(func() { s.Limits.Close(); _, _ = s.Worker.Close(), c.Close() })
	return s, c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	a, c := start(t, srv, "a")
	b, _ := start(t, srv, "b")
	turns, enough := 0, errors.New("enough")
	if err := a.Loop(t.Context(), func(ctx context.Context, _ *recipes.Hold) error {
		if turns++; turns == 2 {
			return enough
		}
		srv.Client("a").ExpireSession()
		<-ctx.Done()
		return ctx.Err()
	}); !errors.Is(err, enough) {
		t.Errorf("the loop ended after %d turns: %v", turns, err)
	}
	check(t, a.Restock(t.Context(),
		func(ctx context.Context) error { _, err := a.Sold.Add(ctx, 7); return err },
		func(ctx context.Context) error {
			if _, err := b.Stock.WriteLock().TryAcquire(ctx); !errors.Is(err, recipes.ErrBusy) {
				t.Errorf("a writer beside a reader: %v", err)
			}
			return b.Stock.ReadLock().TryDo(ctx, func(context.Context, *recipes.Hold) error { return nil }) // beside the reader
		}))
	if sold, err := b.Sold.Get(t.Context()); err != nil || sold.PostValue != 7 {
		t.Errorf("%d sold: %v", sold.PostValue, err)
	}
	if _, err := b.DB.Acquire(t.Context(), 6); !errors.Is(err, recipes.ErrTooManyPermits) {
		t.Errorf("six of five: %v", err)
	}
	check(t, b.Leader.Do(t.Context(), func(ctx context.Context, _ *recipes.Term) error {
		leader, err := a.Leader.Leader(ctx)
		if leader.ID != "b" {
			t.Errorf("%q leads", leader.ID)
		}
		return err
	}))
	_, stat, err := c.CreateStat(t.Context(), "/shop/limits", []byte(`{"orders":3}`))
	check(t, err)
	_, err = b.Limits.Wait(t.Context(), stat.Czxid)
	check(t, err)
	if limits, _ := b.Limits.Get(); limits.Value["orders"] != 3 {
		t.Errorf("limits %v", limits.Value)
	}
	check(t, a.Worker.Wait(t.Context())) // registered again after the lost session
	if members, err := b.Worker.Members(t.Context()); err != nil || len(members) != 2 {
		t.Errorf("workers %v: %v", members, err)
	}
	ended := make(chan error, 2)
	for _, s := range []*ported.Service{a, b} {
		go func() {
			member, err := s.Start.Enter(t.Context())
			if err == nil {
				err = member.Leave(t.Context())
			}
			ended <- err
		}()
	}
	check(t, errors.Join(<-ended, <-ended))
}
