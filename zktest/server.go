package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/docent-go/docent/internal/zkserver"
)

// Server is a ZooKeeper server in this process. Make one with [NewServer] in a
// test or with [Start] elsewhere. All its methods are safe for concurrent use.
type Server struct {
	engine *zkserver.Server
	rules  *ruleSet
	fatal  func(error) // fails the test of NewServer; nil after Start

	mu    sync.Mutex // guards links
	links map[string]*ClientLink
}

// Start starts a server. The caller must Close it. The error reports options that
// contradict each other, or an address that cannot be listened on. After an error
// nothing runs.
func Start(opts ...Option) (*Server, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	s := newServer(zkserver.New(cfg.Config), cfg.fatal)
	if cfg.listen != "" {
		if _, err := s.Listen(cfg.listen); err != nil {
			_ = s.Close() // always nil
			return nil, err
		}
	}
	return s, nil
}

func newServer(engine *zkserver.Server, fatal func(error)) *Server {
	s := &Server{engine: engine, rules: &ruleSet{}, fatal: fatal, links: map[string]*ClientLink{}}
	engine.SetJudge(s.rules.judge)
	return s
}

// Seed returns the seed that all random draws of the server come from.
func (s *Server) Seed() uint64 { return s.engine.Seed() }

// Close ends the server: every connection is closed, the context of every hook
// ends, and Close returns when no goroutine of the server is left. Clients read the
// end of their stream at once, even if a fault holds their connections; later dials
// are refused. A second Close waits as the first does and changes nothing. Hooks
// and observers must not call Close, which waits for them. The error is always nil.
func (s *Server) Close() error { return s.engine.Close() }

// Client returns the link of the named client. The first call with a name makes the
// link.
func (s *Server) Client(name string) *ClientLink {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.links[name]
	if cl == nil {
		cl = &ClientLink{engine: s.engine.Client(name), server: s}
		s.links[name] = cl
	}
	return cl
}

// DialContext connects to the server in memory, as a client without a name.
// See [ClientLink.DialContext].
func (s *Server) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return s.Client("").DialContext(ctx, network, address)
}

// Listen makes the server reachable over TCP, once it runs if it is stopped. It fails when
// the address cannot be listened on, and when the server has one already; nothing has
// changed then. Do not call it inside a synctest bubble: a socket stops the bubble's clock.
func (s *Server) Listen(address string) (net.Addr, error) {
	addr, err := s.engine.Listen(address)
	if err != nil {
		return nil, fmt.Errorf("zktest: listen: %w", err)
	}
	return addr, nil
}

// Addr returns the "host:port" at which the server is reachable over TCP while it runs. If the
// server does not listen yet, Addr makes it listen on a free port of 127.0.0.1. If
// that is impossible, Addr fails the test of [NewServer]. After [Start] it returns
// "". A program should call [Server.Listen], which returns an error. Inside a
// synctest bubble use a dialer instead: a socket stops the bubble's clock.
func (s *Server) Addr() string {
	if a := s.engine.ListenAddr(); a != nil {
		return a.String()
	}
	a, err := s.Listen("127.0.0.1:0")
	switch {
	case err == nil:
		return a.String()
	case errors.Is(err, zkserver.ErrListening):
		return s.engine.ListenAddr().String() // another goroutine was faster
	case s.fatal != nil:
		s.fatal(err)
	}
	return ""
}
