package zktest

import (
	"net"
	"time"
)

// Link is the network of one client as go-zookeeper wants it: a [ClientLink]
// or an [EnsembleLink].
type Link interface {
	Servers() []string
	Dial(network, address string, timeout time.Duration) (net.Conn, error)
	Hosts() *Hosts
	Logger() Logger
}

var (
	_ Link = (*ClientLink)(nil)
	_ Link = (*EnsembleLink)(nil)
)

// Options returns all that go-zookeeper needs to connect through link: its
// dialer, a host provider that neither resolves nor shuffles, and a logger that
// keeps it quiet. The other arguments are always the same:
//
//	conn, events, err := zk.Connect(link.Servers(), 10*time.Second,
//		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
//
// They are there because this package imports nothing, and go-zookeeper's type
// of options has no name. More options can be appended to the result. A
// provider belongs to one connection: call Options again for the next.
//
// Options panics when [Hosts] or [Logger] lack a method that the client wants.
func Options[
	O any,
	D ~func(network, address string, timeout time.Duration) (net.Conn, error),
	H, L any,
](link Link, withDialer func(D) O, withHosts func(H) O, withLogger func(L) O) []O {
	hosts, logger := any(link.Hosts()), any(link.Logger())
	return []O{withDialer(link.Dial), withHosts(hosts.(H)), withLogger(logger.(L))} //nolint:forcetypeassert,errcheck // documented
}
