package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/recipes/nodes"
)

// object is an object of a program that is played.
type object struct {
	*nodes.PersistentNode

	start  chan error // of the newest Start, nil if that has returned
	cancel context.CancelFunc
	sets   []chan error
	path   string // of its own node, before the call
	czxid  int64
}

// compareStart checks whether Start has returned, and how.
func (o *object) compareStart(at phase) error {
	if o.start == nil {
		return nil
	}
	select {
	case err := <-o.start:
		o.start = nil
		want := map[phase]error{fresh: context.Canceled, closed: nodes.ErrClosed}[at]
		if at == waits || !errors.Is(err, want) {
			return fmt.Errorf("Start returns %w, by the rule %w", err, want)
		}
	default:
		if at != waits {
			return errors.New("a Start does not return, and must")
		}
	}
	return nil
}

// compareSets checks which calls of Set have returned.
func (o *object) compareSets(told nodes.State, at phase) error {
	for len(o.sets) > 0 {
		select {
		case err := <-o.sets[0]:
			o.sets = o.sets[1:]
			switch {
			case err == nil && told == nodes.Foreign, err == nil && at == removed:
				return errors.New("a Set returns, and its data does not stand")
			case err != nil && at <= live:
				return fmt.Errorf("a Set fails: %w", err)
			}
			continue
		default:
		}
		if told != nodes.Foreign && at != fresh {
			return errors.New("a Set does not return, and must")
		}
		return nil
	}
	return nil
}

// instant waits until all that follows from the last step has happened, and begins another
// instant. So no two timers are due at one.
func instant() {
	synctest.Wait()
	time.Sleep(time.Microsecond)
	synctest.Wait()
}
