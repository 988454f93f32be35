package seqqueue

import (
	"sync"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// Gone tells when nothing stands any more of a create that has failed. A nil Gone is of one
// that was never sent. It is safe for concurrent use.
type Gone struct {
	mu   sync.Mutex // guards the rest
	gone bool
	then func()
}

// Of makes g that of node, which is about to be made. Of several nodes it is the first.
func (g *Gone) Of(node *inside.Node[client.Client]) { node.Gone = g.note }

func (g *Gone) note() {
	g.mu.Lock()
	g.gone = true
	then := g.then
	g.mu.Unlock()
	if then != nil {
		then()
	}
}

// Then calls f as soon as nothing stands any more: at once, or later on another goroutine. The
// caller calls it once, after the create has failed.
func (g *Gone) Then(f func()) {
	if g == nil {
		f()
		return
	}
	g.mu.Lock()
	gone := g.gone
	g.then = f
	g.mu.Unlock()
	if gone {
		f()
	}
}
