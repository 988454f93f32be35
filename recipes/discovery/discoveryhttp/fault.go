package discoveryhttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// watch tells the faults of the caller from those of an instance.
type watch struct {
	asked  atomic.Bool // for a connection, so the request is well formed
	broken atomic.Bool // the body of the request is not what was announced, or breaks off
}

// watched is the request with a watch on it.
func watched(req *http.Request) (*http.Request, *watch) {
	w := &watch{}
	out := req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(string) { w.asked.Store(true) },
	}))
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &sent{ReadCloser: req.Body, watch: w, announced: req.ContentLength}
	}
	return out, w
}

// callersFault reports whether a request that has no answer could not be sent by anybody.
func (w *watch) callersFault() bool { return !w.asked.Load() || w.broken.Load() }

// sent is the body of a request.
type sent struct {
	io.ReadCloser
	watch     *watch
	announced int64 // its length, not positive if that is not known
	read      int64
	closed    atomic.Bool
}

// Read notes that the body breaks off. What comes after Close says nothing.
func (s *sent) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.read += int64(n)
	over := errors.Is(err, io.EOF)
	wrong := s.announced > 0 && (s.read > s.announced || over && s.read < s.announced)
	if (wrong || err != nil && !over) && !s.closed.Load() {
		s.watch.broken.Store(true)
	}
	return n, err
}

// Close closes the body.
func (s *sent) Close() error {
	s.closed.Store(true)
	return s.ReadCloser.Close()
}
