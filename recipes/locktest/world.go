package locktest

import (
	"time"

	"github.com/docent-go/docent/client"
)

// World is a server or an ensemble, and what can be done to it. One world
// serves one test; it fails the test when it cannot do what it is asked for.
type World interface {
	// Path is the path of a lock that no test has used.
	Path() string
	// Connect returns a client with a session and a connection of its own,
	// which faults name. It is closed when the test ends.
	Connect(name string) *client.Client

	// Ways are the ways of [World.Lose].
	Ways() []string
	// Lose breaks the client's connection at its nth request from now on, in one
	// of the ways. It does so before the server has the request, or so that the
	// answer is lost. Pings do not count.
	Lose(client string, nth int, way string) Fault
	// AtAnswer runs f when the server has answered the client's nth request
	// from now on, before the client has the answer.
	AtAnswer(client string, nth int, f func()) Fault
	// Kill ends a session, as an operator can.
	Kill(session int64)
	// Silence holds everything on the client's connections, and Heal lets it go.
	Silence(client string)
	Heal(client string)

	// Delete deletes a node by force.
	Delete(path string)
	// Ephemerals are the paths of the ephemeral nodes below path, by the newest
	// state.
	Ephemerals(path string) []string
	// Watched are the watched paths below path, one for each watch.
	Watched(path string) []string
	// Goroutines are the stacks of what still runs in the recipes on behalf of
	// this test, if the world can tell.
	Goroutines() []string

	// RoundTrip is about how long a request takes.
	RoundTrip() time.Duration
}

// Fault is a fault that may happen.
type Fault interface {
	// Fired reports whether it did.
	Fired() bool
	// Remove keeps it from happening.
	Remove()
}
