package peers

import (
	"context"
	"errors"
	"fmt"
)

// Added is the result of an operation on a DistributedAtomicLong of Curator's.
type Added struct {
	Succeeded     bool
	Pre, Post     int64
	PromotedTries int
}

// Add adds delta. Succeeded says what Curator says.
func (th *Thread) Add(ctx context.Context, number string, delta int64) (Added, error) {
	return th.added(ctx, fmt.Sprintf("add %s %d", number, delta))
}

// Next takes a number of a CachedAtomicLong that reserves ten at a time.
func (th *Thread) Next(ctx context.Context, number string) (Added, error) {
	return th.added(ctx, "next "+number)
}

// Number reads the number.
func (th *Thread) Number(ctx context.Context, number string) (Added, error) {
	return th.added(ctx, "number "+number)
}

func (th *Thread) added(ctx context.Context, command string) (a Added, err error) {
	text, err := th.peer.call(ctx, th.name, command)
	if errors.Is(err, ErrTimeUp) { // "false" means that it was not done
		return Added{}, nil
	}
	if err != nil {
		return Added{}, err
	}
	a.Succeeded = true
	_, err = fmt.Sscan(text, &a.Pre, &a.Post, &a.PromotedTries)
	return a, err
}
