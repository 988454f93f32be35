package fence_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/docent-go/docent/fence"
)

// Answers that have nothing to do with a token are no refusals.
func TestCheckResponse(t *testing.T) {
	t.Parallel()
	refused := func(why string) http.Header {
		return http.Header{fence.RefusedHeader: {why}, fence.NewestHeader: {"7"}}
	}
	for _, resp := range []*http.Response{
		{StatusCode: 200},
		{StatusCode: 500},
		{StatusCode: 412}, // of If-Match
		{StatusCode: 428}, // of a service that wants If-Match
		{StatusCode: 400},
		{StatusCode: 412, Header: http.Header{fence.NewestHeader: {"7"}}}, // of a request that passed
		{StatusCode: 200, Header: refused("stale")},
		{StatusCode: 412, Header: refused("no-token")},
		{StatusCode: 428, Header: refused("stale")},
		{StatusCode: 400, Header: refused("x")},
	} {
		if err := fence.CheckResponse(resp); err != nil {
			t.Errorf("%d %v: %v", resp.StatusCode, resp.Header, err)
		}
	}
}

// A handler's own 412 and 428 are not taken for refusals of the token. What the
// handler answers by Refuse is.
func TestHTTPOwnAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error // of the handler's own write
		status int   // the handler's own, if err is no refusal
		want   error
	}{
		{status: http.StatusPreconditionFailed},
		{status: http.StatusPreconditionRequired},
		{status: http.StatusBadRequest},
		{err: errBody, status: http.StatusPreconditionFailed},
		{err: &fence.StaleError{Resource: "a", Token: 5, Newest: 6}, status: http.StatusPreconditionFailed, want: fence.ErrStale},
		{err: fence.ErrNoToken, status: http.StatusPreconditionRequired, want: fence.ErrNoToken},
		{err: fence.ErrOtherResource, status: http.StatusBadRequest, want: fence.ErrOtherResource},
	} {
		_, h := shelf(fence.RefuseMissing, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !fence.Refuse(w, c.err) {
				w.WriteHeader(c.status)
			}
		}))
		status, _, err := send(carrying(t.Context(), t, "a", 5), t, h, http.MethodPut, "/a")
		if status != c.status || !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%v: answered %d, %v; want %d, %v", c.err, status, err, c.status, c.want)
		}
	}
}
