package fence

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Remote is the [Checker] of a resource that another service guards with
// [Handler]. It is a value and safe for concurrent use.
type Remote struct {
	// Client sends requests by a [Transport], which knows the resource of URL.
	Client *http.Client
	// URL is one of the resource that Do is called with, at which HEAD requests
	// reach the service's Handler.
	URL string
}

var errNoClient = errors.New("fence: Remote.Client is nil; it needs one with a Transport of package fence")

// Do raises the token by a HEAD request with [RaiseHeader], which the service's
// [Handler] answers itself, and then runs fn. The service accepts no request of
// an older holder after fn has begun. fn's context carries the token, which
// Client sends with fn's own requests.
//
// The error is fn's. If fn did not run, the error is the one that [CheckResponse]
// makes of the answer, or that of the request. Otherwise it says that the answer
// came from no Handler, or that Client's Transport knows URL by another name
// ([ErrOtherResource]). In the last cases the token may have been raised,
// which harms no newer holder: repeat the call.
func (r Remote) Do(ctx context.Context, resource string, token int64, fn func(ctx context.Context) error) error {
	if fn == nil {
		return errNoFunction
	}
	if err := valid(resource, token); err != nil {
		return err
	}
	if r.Client == nil {
		return errNoClient
	}
	ctx = carry(ctx, resource, token, nil)
	if err := r.raise(ctx, resource, token); err != nil {
		return err
	}
	return fn(ctx)
}

func (r Remote) raise(ctx context.Context, resource string, token int64) error {
	fail := func(err error) error { return fmt.Errorf("fence: raise the token of %q: %w", resource, err) }
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, r.URL, http.NoBody)
	if err != nil {
		return fail(err)
	}
	if t, ok := r.Client.Transport.(*Transport); ok && t.Resource != nil {
		if name := t.Resource(req); name != resource { // it would send no token
			return fail(fmt.Errorf("%w: Transport.Resource says that %s is %q; give the Remote a URL of its own resource, and one name to both", ErrOtherResource, r.URL, name))
		}
	}
	req.Header.Set("Cache-Control", "no-cache") // the service itself must see it
	req.Header.Set(RaiseHeader, "1")
	resp, err := r.Client.Do(req)
	if err != nil {
		return fail(because(ctx, err))
	}
	_ = resp.Body.Close() // of a HEAD there is none to read
	if err := CheckResponse(resp); err != nil {
		return err
	}
	if resp.Header.Get(NewestHeader) != strconv.FormatInt(token, 10) {
		return fail(fmt.Errorf("HEAD %s answered %s without %s: %d; it must reach the service's Handler with the token", r.URL, resp.Status, NewestHeader, token))
	}
	if raised := resp.Header.Get(ResourceHeader); raised != url.PathEscape(resource) {
		return fail(fmt.Errorf("%w: HEAD %s raised the token of %q; give the Remote a URL of its own resource", ErrOtherResource, r.URL, raised))
	}
	return nil
}
