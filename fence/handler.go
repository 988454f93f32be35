package fence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
)

// Missing says what a [Handler] does with a request that carries no token.
type Missing int

const (
	// RefuseMissing answers 428 Precondition Required.
	RefuseMissing Missing = iota
	// AdmitReads lets GET, HEAD, OPTIONS and TRACE pass, which write nothing
	// where HTTP is used as it is meant. It refuses the others. A read without a
	// token raises none: a holder that decides by what it reads sends its token
	// with the read too.
	AdmitReads
	// AdmitMissing lets every request pass. It is for the time in which clients
	// are being converted: a request without a token is not fenced.
	AdmitMissing
)

func (m Missing) admits(method string) bool {
	switch m {
	case AdmitMissing:
		return true
	case AdmitReads:
		return method == http.MethodGet || method == http.MethodHead ||
			method == http.MethodOptions || method == http.MethodTrace
	default:
		return false
	}
}

// Handler returns a handler that fences the requests to next. A request passes
// only if its [TokenHeader] is no older than the newest token seen of the
// resource, and if its [ResourceHeader] names that resource. The function
// resource finds the name in the request.
//
// at compares the tokens, by its Do. With a *[Gate], next runs alone: a newer
// holder's request waits for it, and ends its context. With a [Database], the
// token is raised in the database before next runs, and next writes by
// [Database.Tx]. A service of several processes needs the Database, because
// each process has a Gate of its own. In both cases the context carries the
// token, for Tx or to hand it on by [Transport].
//
// A HEAD request with [RaiseHeader] only raises the token: Handler answers 204 No
// Content, or refuses, and next does not run. It needs a token whatever missing is.
//
// The answer to a request that passed names the newest token in [NewestHeader].
// Otherwise next does not run, and the answer is:
//   - 412 Precondition Failed, if the token is too old
//   - 428 Precondition Required, if there is no token and missing refuses that
//   - 400 Bad Request, if the token is for another resource, or is no positive
//     number
//   - 503 Service Unavailable, if the request ended while it waited, or if the
//     token could not be raised; the reason for the latter is logged
//
// [CheckResponse] makes an error of the first three.
func Handler(at Checker, resource func(*http.Request) string, missing Missing, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values(TokenHeader)) == 0 {
			if !raises(r) && missing.admits(r.Method) {
				next.ServeHTTP(w, r)
				return
			}
			Refuse(w, fmt.Errorf("fence: %w: the request needs a %s", ErrNoToken, TokenHeader))
			return
		}
		name := resource(r)
		token, err := addressed(r, name)
		if err != nil {
			if !Refuse(w, err) {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
			return
		}
		ran := false
		err = at.Do(r.Context(), name, token, func(ctx context.Context) error {
			ran = true
			w.Header().Set(NewestHeader, strconv.FormatInt(token, 10))
			if raises(r) {
				w.Header().Set(ResourceHeader, url.PathEscape(name)) // the answer to a raise says of what
				w.WriteHeader(http.StatusNoContent)
			} else {
				next.ServeHTTP(w, r.WithContext(ctx))
			}
			return nil
		})
		if ran || Refuse(w, err) {
			return
		}
		if r.Context().Err() == nil {
			slog.ErrorContext(r.Context(), "fence: a token could not be raised", "resource", name, "reason", err)
		}
		http.Error(w, "fence: the token could not be raised", http.StatusServiceUnavailable)
	})
}

// raises reports whether r only raises its token, so that the service must not act
// on it.
func raises(r *http.Request) bool {
	return r.Method == http.MethodHead && r.Header.Get(RaiseHeader) != ""
}

// addressed returns the token of a request that is meant for the resource.
func addressed(r *http.Request, resource string) (token int64, err error) {
	tokens := r.Header.Values(TokenHeader)
	token, err = strconv.ParseInt(tokens[0], 10, 64)
	if err != nil || token <= 0 || len(tokens) > 1 {
		return 0, fmt.Errorf("fence: %s is %q, want one positive number", TokenHeader, tokens)
	}
	if err := valid(resource, token); err != nil {
		return 0, err
	}
	names := r.Header.Values(ResourceHeader)
	if len(names) == 1 {
		if name, err := url.PathUnescape(names[0]); err == nil && name == resource {
			return token, nil
		}
	}
	return 0, fmt.Errorf("fence: %w: %s is %q, and the request would write %q", ErrOtherResource, ResourceHeader, names, resource)
}

// Refuse answers a request whose write was refused by err, and reports whether
// it did. It is for a handler whose own [Database.Tx] or [Gate.Do] was refused.
// It answers as [Handler] does an err that is or wraps a [*StaleError], or matches
// [ErrNoToken] or [ErrOtherResource], and does nothing otherwise.
func Refuse(w http.ResponseWriter, err error) bool {
	var stale *StaleError
	h := w.Header()
	switch {
	case errors.As(err, &stale):
		h.Set(RefusedHeader, refusedStale)
		h.Set(TokenHeader, strconv.FormatInt(stale.Token, 10))
		h.Set(NewestHeader, strconv.FormatInt(stale.Newest, 10))
		h.Set(ResourceHeader, url.PathEscape(stale.Resource))
		http.Error(w, stale.Error(), http.StatusPreconditionFailed)
	case errors.Is(err, ErrNoToken):
		h.Set(RefusedHeader, refusedMissing)
		http.Error(w, err.Error(), http.StatusPreconditionRequired)
	case errors.Is(err, ErrOtherResource):
		h.Set(RefusedHeader, refusedResource)
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		return false
	}
	return true
}
