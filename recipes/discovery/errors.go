package discovery

import (
	"errors"
	"strings"

	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/nodes"
)

// ErrClosed says that a registration or a directory has ended: by Close, or with its client.
var ErrClosed = errors.New("discovery: closed")

// ErrUnusable says that nobody could call an instance: it has no address or no port, or these are
// none.
var ErrUnusable = errors.New("discovery: nobody could call the instance")

// below is an error of a package that this one is built on, with this package's name.
type below struct{ err error }

func (e *below) Error() string {
	text := e.err.Error()
	for _, name := range []string{"nodes: ", "cache: "} {
		text = strings.TrimPrefix(text, name)
	}
	return "discovery: " + text
}

// Unwrap returns the error of that package.
func (e *below) Unwrap() error { return e.err }

// Is reports whether target is ErrClosed and the package says that it is.
func (e *below) Is(target error) bool {
	return target == ErrClosed && (errors.Is(e.err, nodes.ErrClosed) || errors.Is(e.err, cache.ErrClosed))
}

// raised is err as an error of this package.
func raised(err error) error {
	if err == nil {
		return nil
	}
	return &below{err}
}
