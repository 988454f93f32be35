package recipes

import (
	"fmt"
	"testing"
)

// A campaign stands in line again only if its node was deleted before it had a term.
func TestDeletedInLine(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		ErrNodeDeleted:                                true,
		fmt.Errorf("joined: %w", ErrNodeDeleted):      true,
		fmt.Errorf("%w: %w", ErrLost, ErrNodeDeleted): false,
		ErrLost:    false,
		errGaveWay: false,
	} {
		if got := deletedInLine(err); got != want {
			t.Errorf("deletedInLine(%v) = %v, want %v", err, got, want)
		}
	}
	if deletedInLine(nil) {
		t.Error("deletedInLine(nil) = true, want false")
	}
}
