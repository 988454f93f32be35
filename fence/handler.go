package fence

import (
	"context"
	"errors"
	"fmt"
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
	// where HTTP is used as it is meant, and refuses the others.
	AdmitReads
	// AdmitMissing lets every request pass: while clients are being converted,
	// and no longer, because it fences only those who ask for it.
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

// Handler returns a handler that lets a request pass to next only if its
// [TokenHeader] is no older than the newest seen of the resource, whose name
// resource finds in the request. It works by [Gate.Do]: while next runs, no
// newer holder's request to the resource does; when one comes, the context of
// this one ends. The context carries the token, for [Database.Tx] or to hand
// it on by [Transport].
//
// A request with an older token is answered 412 Precondition Failed, with what
// [CheckResponse] wants to know; one with a token that is no positive number
// 400; one without a token as missing says; one whose context ended while an
// older one was running, 503. next does not run then. All fenced requests for
// one resource must come to the same gate: a service of several processes
// checks in the database instead.
func Handler(gate *Gate, resource func(*http.Request) string, missing Missing, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(TokenHeader)
		if len(values) == 0 {
			if missing.admits(r.Method) {
				next.ServeHTTP(w, r)
				return
			}
			http.Error(w, "fence: the request needs a "+TokenHeader, http.StatusPreconditionRequired)
			return
		}
		token, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil || token <= 0 || len(values) > 1 {
			http.Error(w, fmt.Sprintf("fence: %s is %q, want one positive number", TokenHeader, values), http.StatusBadRequest)
			return
		}
		ran := false
		err = gate.Do(r.Context(), resource(r), token, func(ctx context.Context) error {
			ran = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if !ran {
			refuse(w, r, err)
		}
	})
}

// refuse answers a request that did not pass the gate.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	var stale *StaleError
	switch {
	case errors.As(err, &stale):
		h := w.Header()
		h.Set(TokenHeader, strconv.FormatInt(stale.Token, 10))
		h.Set(NewestHeader, strconv.FormatInt(stale.Newest, 10))
		h.Set(ResourceHeader, url.PathEscape(stale.Resource))
		http.Error(w, stale.Error(), http.StatusPreconditionFailed)
	case r.Context().Err() != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default: // the resource has no name that could be told from others
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
