package fence

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	// TokenHeader carries the token of a request, as a decimal number.
	TokenHeader = "Fencing-Token"
	// ResourceHeader carries, beside TokenHeader, the name of the resource that
	// the token is for, escaped as a segment of a path. A refusal of a stale
	// token has both headers too.
	ResourceHeader = "Fencing-Resource"
	// NewestHeader carries, in an answer, the newest token that the resource
	// has seen.
	NewestHeader = "Fencing-Newest"
	// RefusedHeader marks an answer as the refusal of a token. A handler's own
	// 412 or 428 does not have it.
	RefusedHeader = "Fencing-Refused"
	// RaiseHeader marks a HEAD request that raises the token and does no more:
	// that of a [Remote]. Its value is "1".
	RaiseHeader = "Fencing-Raise"
)

// The values of RefusedHeader.
const (
	refusedStale    = "stale"
	refusedMissing  = "no-token"
	refusedResource = "other-resource"
)

// Transport is an [http.RoundTripper] that sends the token of a request's
// context to the resource that the token is for, and nowhere else. It sets
// [TokenHeader] and [ResourceHeader], and removes both from every other
// request. A request whose context carries no token for its resource is sent
// without one: whether that will do is for the server to say ([Missing]). Safe
// for concurrent use.
//
// A redirect to another host loses the token, and does not get it back.
//
// A RoundTripper may not turn a response into an error, so a refusal is a
// response; [CheckResponse] makes the error. A request ends with its context,
// and so with the hold, but a request that is under way cannot be called back.
type Transport struct {
	// Base sends the requests; nil is http.DefaultTransport.
	Base http.RoundTripper
	// Resource names the resource that a request reads or writes, by the name
	// that the server's Handler uses. It returns "" for a request to a server
	// that is not to see a token. So it must look at the host as well as at the
	// path.
	Resource func(*http.Request) string
}

var errNoResource = errors.New("fence: Transport.Resource is nil; it says which requests are for which resource")

// RoundTrip sends the request. Its error is that of Base, or says that Resource
// is nil; then nothing was sent.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.Resource == nil {
		if req.Body != nil {
			_ = req.Body.Close() // which a RoundTripper must do in any case
		}
		return nil, errNoResource
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	resource := t.Resource(req)
	req = req.Clone(req.Context()) // a RoundTripper may not change its caller's
	req.Header.Del(TokenHeader)
	req.Header.Del(ResourceHeader)
	if token, ok := Token(req.Context(), resource); ok && sameHost(req) {
		req.Header.Set(TokenHeader, strconv.FormatInt(token, 10))
		req.Header.Set(ResourceHeader, url.PathEscape(resource))
	}
	return base.RoundTrip(req)
}

// sameHost reports whether every redirect that led to req stayed on its host.
func sameHost(req *http.Request) bool {
	for r := req; r.Response != nil; r = r.Response.Request {
		if r.Response.Request == nil || !strings.EqualFold(r.Response.Request.URL.Host, req.URL.Host) {
			return false
		}
	}
	return true
}

// CheckResponse returns an error if resp is a [Handler]'s refusal of a token. It
// returns nil for every other response, also if its status is an error. The
// error is a [*StaleError] or matches [ErrNoToken] or [ErrOtherResource].
// CheckResponse leaves the body alone.
func CheckResponse(resp *http.Response) error {
	switch refused := resp.Header.Get(RefusedHeader); {
	case refused == refusedStale && resp.StatusCode == http.StatusPreconditionFailed:
		stale := &StaleError{}
		stale.Token, _ = strconv.ParseInt(resp.Header.Get(TokenHeader), 10, 64)
		stale.Newest, _ = strconv.ParseInt(resp.Header.Get(NewestHeader), 10, 64)
		var err error
		if stale.Resource, err = url.PathUnescape(resp.Header.Get(ResourceHeader)); err != nil {
			stale.Resource = resp.Header.Get(ResourceHeader)
		}
		return stale
	case refused == refusedMissing && resp.StatusCode == http.StatusPreconditionRequired:
		return fmt.Errorf("fence: %w: the server wants one in %s; send the request by a fence.Transport whose Resource names the resource, with the context of fence.Do", ErrNoToken, TokenHeader)
	case refused == refusedResource && resp.StatusCode == http.StatusBadRequest:
		return fmt.Errorf("fence: %w: the server knows it by another name, or Transport.Resource is wrong", ErrOtherResource)
	}
	return nil
}
