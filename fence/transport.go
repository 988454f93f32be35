package fence

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

const (
	// TokenHeader carries the token of a request, as a decimal number.
	TokenHeader = "Fencing-Token"
	// NewestHeader carries, in the answer to a request that was refused, the
	// newest token that the resource has seen.
	NewestHeader = "Fencing-Newest"
	// ResourceHeader carries, beside NewestHeader, the name of the resource,
	// escaped as a segment of a path.
	ResourceHeader = "Fencing-Resource"
)

// Transport is an [http.RoundTripper] that puts the token of a request's
// context ([Context], [Do], [WithToken]) into [TokenHeader]. A request without
// one is sent as it is: whether that will do is the server's to say
// ([Missing]). Safe for concurrent use.
//
// A refusal is a response, which a RoundTripper may not turn into an error;
// [CheckResponse] does. A request ends with its context, and so with the hold,
// but one that is on its way cannot be called back.
type Transport struct {
	// Base sends the requests; nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends the request. Its error is that of Base.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if token, ok := Token(req.Context()); ok {
		req = req.Clone(req.Context()) // the caller's is not ours to change
		req.Header.Set(TokenHeader, strconv.FormatInt(token, 10))
	}
	return base.RoundTrip(req)
}

// CheckResponse returns a [*StaleError] if resp says that a [Handler] refused
// the request's token, an error that matches [ErrNoToken] if the handler wants
// one, and nil otherwise, also where the status is another error. It leaves
// the body alone.
func CheckResponse(resp *http.Response) error {
	newest, err := strconv.ParseInt(resp.Header.Get(NewestHeader), 10, 64)
	refused := err == nil
	switch {
	case resp.StatusCode == http.StatusPreconditionRequired:
		return fmt.Errorf("fence: %w: the server wants one in %s", ErrNoToken, TokenHeader)
	case resp.StatusCode != http.StatusPreconditionFailed, !refused:
		return nil
	}
	stale := &StaleError{Newest: newest}
	stale.Token, _ = strconv.ParseInt(resp.Header.Get(TokenHeader), 10, 64)
	if stale.Resource, err = url.PathUnescape(resp.Header.Get(ResourceHeader)); err != nil {
		stale.Resource = resp.Header.Get(ResourceHeader)
	}
	return stale
}
