package zkcontainer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// A server that is just starting may take a request and never answer. That costs a quarter
// of a second, and a server that is slow still gets two.
func TestAwaitSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var limits []time.Duration
		quick := 0
		began := time.Now()
		_, err := zkcontainer.Await(t.Context(), func(ctx context.Context) (int, error) {
			if quick++; quick <= 20 { // nobody listens yet
				return 0, errors.New("refused")
			}
			asked := time.Now()
			if len(limits) == 6 {
				return 1, nil
			}
			<-ctx.Done()
			limits = append(limits, time.Since(asked))
			return 0, context.Cause(ctx)
		})
		check(t, err)
		const most = 2 * time.Second
		want := []time.Duration{time.Second / 4, time.Second / 2, time.Second, most, most, most}
		if !slices.Equal(limits, want) {
			t.Errorf("the attempts get %v, want %v", limits, want)
		}
		if took := time.Since(began); took > 9*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// The error of a wait says what was answered last, and why it ended.
func TestAwaitEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why, last := errors.New("enough"), errors.New("not yet")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err := zkcontainer.Await(ctx, func(context.Context) (int, error) { return 0, last })
		if !errors.Is(err, why) || !errors.Is(err, last) {
			t.Error(err)
		}
	})
}
