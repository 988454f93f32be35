package cache

import (
	"errors"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// endedFeed is over, and heard nothing of late.
type endedFeed struct{ inside.Feed }

func (endedFeed) Take() ([]inside.FeedEvent, error) { return nil, client.ErrUnsupported }

// A feed that is over may have missed events of transactions that answers have shown. So a
// cache that opens another feed asks for what has changed since the answer before.
func TestEndedFeedHasNotToldAll(t *testing.T) {
	t.Parallel()
	k := newKeeper(&follower[string]{})
	k.feed, k.head, k.valid = endedFeed{}, 10, 5
	if err := k.absorb(); !errors.Is(err, client.ErrUnsupported) || k.valid != 5 {
		t.Errorf("%v; all events up to %d were taken, want 5", err, k.valid)
	}
}
