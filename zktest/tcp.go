package zktest

import (
	"errors"
	"fmt"
	"net"
)

// errListening is returned by a second Listen.
var errListening = errors.New("zktest: the server listens already")

// Listen makes the server reachable over TCP. It fails when the address cannot
// be listened on, or when the server listens already; nothing has changed
// then. It must not be called inside a synctest bubble: a socket stops the
// bubble's clock.
func (s *Server) Listen(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("zktest: listen: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		err = net.ErrClosed
	case s.listener != nil:
		err = errListening
	}
	if err != nil {
		_ = l.Close() // it was never used
		return nil, err
	}
	s.listener = l
	s.wg.Go(func() { s.acceptLoop(l) })
	return l.Addr(), nil
}

// Addr returns the "host:port" at which the server is reachable over TCP. The
// first call makes it listen on a free port of 127.0.0.1, unless it listens
// already. If that is impossible, Addr fails the test of [NewServer]; after
// [Start] it returns "". For a program, Listen with its error is the better
// choice. Inside a synctest bubble use a dialer instead: a socket stops the
// bubble's clock.
func (s *Server) Addr() string {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	if l != nil {
		return l.Addr().String()
	}
	a, err := s.Listen("127.0.0.1:0")
	switch {
	case err == nil:
		return a.String()
	case errors.Is(err, errListening):
		return s.Addr() // somebody was faster
	case s.cfg.fatal != nil:
		s.cfg.fatal(err)
	}
	return ""
}

func (s *Server) acceptLoop(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the listener is closed, or useless
		}
		s.acceptTCP(c)
	}
}

// acceptTCP bridges a socket to a link, so that all faults work on it.
func (s *Server) acceptTCP(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.client(TCPClient)
	if s.closed || s.stopped || s.refusing || cl.refusing {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a reset is closer to a refusal than an end of stream
		}
		_ = c.Close()
		return
	}
	end := s.open(cl, c, c.RemoteAddr())
	s.wg.Go(func() { bridgeUp(end, c) })
	s.wg.Go(func() { bridgeDown(end, c) })
}

// maxBridged is how much of what a TCP client sends waits in memory for the
// server; the rest waits in the kernel.
const maxBridged = 1 << 20

// bridgeUp carries bytes from the socket until it ends. The other direction
// may go on.
func bridgeUp(end *linkEnd, c net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			_, _ = end.Write(buf[:n]) // fails only after bridgeDown is done
			end.out.awaitRoom(maxBridged)
		}
		if err != nil {
			end.out.closeWrite()
			return
		}
	}
}

// bridgeDown carries bytes to the socket until the server's stream ends, and
// closes both.
func bridgeDown(end *linkEnd, c net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := end.Read(buf)
		if n > 0 {
			if _, werr := c.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			break
		}
	}
	_ = c.Close() // ends bridgeUp
	_ = end.Close()
}
