package observe_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
)

func TestErrorType(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"":              nil,
		"NONODE":        &client.OpError{Op: "get", Err: fmt.Errorf("more: %w", client.ErrNoNode)},
		"THROTTLEDOP":   client.ErrThrottled,
		"canceled":      errors.Join(client.ErrNotConnected, context.Canceled),
		"not_connected": errors.Join(context.DeadlineExceeded, client.ErrNotConnected),
		"closed":        client.ErrClosed,
		"timeout":       &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		"_OTHER":        client.Code(-4711),
	} {
		if got := observe.ErrorType(err); got != want {
			t.Errorf("ErrorType(%v) = %q, want %q", err, got, want)
		}
	}
	// Each code of a server that the client knows by a text has a word.
	for code := int32(-1); code >= -130; code-- {
		err := client.Code(code)
		if known := err.Error() != fmt.Sprintf("zk: server error (code %d)", code); known && observe.ErrorType(err) == "_OTHER" && code != -9 {
			t.Errorf("%v has no word", err)
		}
	}
}
