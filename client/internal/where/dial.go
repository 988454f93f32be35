package where

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

// Dial connects to addr. It tries every address of the name until one answers. ctx
// limits dial, TLS and handshake together.
func (s *Servers) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return s.dial(ctx, addr, false)
}

// DialReached is Dial for the server that Reached names. It begins with the address at which
// that server accepted a session, and leaves the order of the others as it is.
func (s *Servers) DialReached(ctx context.Context, addr string) (net.Conn, error) {
	return s.dial(ctx, addr, true)
}

func (s *Servers) dial(ctx context.Context, addr string, again bool) (net.Conn, error) {
	s.mu.Lock()
	s.dialed[addr] = true
	s.mu.Unlock()
	conn, err := s.dialTCP(ctx, addr, again)
	if err != nil || s.cfg.TLS == nil {
		return conn, err
	}
	wire.TransportUp(ctx)
	cfg := s.cfg.TLS
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	tc := tls.Client(conn, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeError{err}
	}
	return tc, nil
}

// dialTCP connects to a server of addr. It tries the addresses of the name one after
// the other. Each gets an equal part of ctx's time that is left.
func (s *Servers) dialTCP(ctx context.Context, addr string, again bool) (net.Conn, error) {
	if s.cfg.Dial != nil {
		conn, err := s.cfg.Dial(ctx, "tcp", addr)
		if conn == nil && err == nil {
			err = errors.New("the function of WithDialer returned neither a connection nor an error")
		}
		return conn, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	found, err := s.cfg.Lookup(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	line := s.line(addr, found)
	if again {
		s.mu.Lock()
		at := s.at
		s.mu.Unlock()
		if i := slices.Index(line, at); i > 0 {
			line = slices.Insert(slices.Delete(line, i, i+1), 0, at)
		}
	}
	for i, a := range line {
		if !again {
			s.turn(addr, a)
		}
		part, cancel := partOf(ctx, len(line)-i)
		var conn net.Conn
		conn, err = s.cfg.Connect(part, "tcp", net.JoinHostPort(a.String(), port))
		cancel()
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// partOf ends after the n-th part of ctx's time that is left.
func partOf(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// line returns the addresses of a name, in the order in which to try them. found are
// its present ones. New ones come first, in a random order, which spreads clients over
// them. Then come those that were tried, longest ago first.
func (s *Servers) line(addr string, found []netip.Addr) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range found {
		found[i] = a.Unmap()
	}
	var line []netip.Addr
	for _, a := range found {
		if !slices.Contains(s.lines[addr], a) && !slices.Contains(line, a) {
			line = append(line, a)
		}
	}
	shuffle(s.cfg.Rand, line)
	for _, a := range s.lines[addr] {
		if slices.Contains(found, a) {
			line = append(line, a)
		}
	}
	if slices.Contains(s.addrs, addr) {
		s.lines[addr] = line
	}
	return slices.Clone(line)
}

// turn notes that an address of a name is tried now.
func (s *Servers) turn(addr string, a netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[addr]
	if i := slices.Index(line, a); i >= 0 {
		s.lines[addr] = append(slices.Delete(line, i, i+1), a)
	}
}
