package discoveryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/docent-go/docent/recipes/discovery"
)

// attempt is what came of sending a request to one instance.
type attempt struct {
	resp   *http.Response
	err    error
	failed bool // the instance has
}

// send sends the request. What the call has come to is told when the body of the answer is closed.
func send(rt http.RoundTripper, req *http.Request, call *discovery.Call) attempt {
	out, watch := watched(req)
	resp, err := rt.RoundTrip(out)
	if err != nil {
		switch {
		case errors.Is(req.Context().Err(), context.Canceled):
			call.Done(context.Canceled)
			return attempt{err: err}
		case watch.callersFault():
			call.Done(context.Canceled) // it says nothing of the instance
			return attempt{err: err}
		}
		call.Done(err)
		return attempt{err: fmt.Errorf("discoveryhttp: %v: %w", call.Instance, err), failed: true}
	}
	resp.Request = req
	var verdict error
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		verdict = errors.New(resp.Status)
	}
	answer := &body{ReadCloser: resp.Body, ctx: req.Context(), call: call, verdict: verdict}
	switch both, is := resp.Body.(io.ReadWriteCloser); {
	case resp.Body == http.NoBody:
		call.Done(verdict)
	case is: // of a connection that changes its protocol
		resp.Body = struct {
			*body
			io.Writer
		}{answer, both}
	default:
		resp.Body = answer
	}
	return attempt{resp: resp, failed: verdict != nil}
}

// drop lets go of an answer that nobody gets.
func (a attempt) drop() {
	if a.resp != nil {
		_ = a.resp.Body.Close() // unread: it may come slowly
	}
}

// unsent reports whether the request was not sent, because the instance could not be dialled.
func (a attempt) unsent() bool {
	var dial *dialError
	return errors.As(a.err, &dial)
}

// repeatable reports whether the request may be sent again after this attempt.
func (a attempt) repeatable(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	if a.unsent() {
		return true
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	_, key := req.Header["Idempotency-Key"]
	_, old := req.Header["X-Idempotency-Key"]
	return key || old
}

// again is a copy of the request with a new body.
func again(req *http.Request) (*http.Request, error) {
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		var err error
		if out.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	ctx     context.Context //nolint:containedctx // it is that of the request, and ends with the body
	call    *discovery.Call
	verdict error
}

// Read notes that the answer breaks off, or that it is complete.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.call.Done(b.verdict)
	case b.ctx.Err() != nil:
		b.call.Done(b.ctx.Err())
	default:
		b.call.Done(err)
	}
	return n, err
}

// Close says that the call has ended.
func (b *body) Close() error {
	b.call.Done(b.verdict)
	return b.ReadCloser.Close()
}
