package zkserver

import (
	"errors"
	"net"
)

// ErrListening is the error of a second [Server.Listen].
var ErrListening = errors.New("the server listens already")

// Listen makes the server reachable over TCP. The error is that of [net.Listen],
// [ErrListening], or [net.ErrClosed] after Close; nothing has changed then.
func (s *Server) Listen(address string) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		err = net.ErrClosed
	case s.listener != nil:
		err = ErrListening
	}
	if err != nil {
		_ = l.Close() // it was never used
		return nil, err
	}
	s.listener = l
	s.wg.Go(func() { s.acceptLoop(l) })
	return l.Addr(), nil
}

// ListenAddr returns the address that the server listens on, or nil.
func (s *Server) ListenAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// TCPClient is the name of the link that all connections over TCP belong to.
const TCPClient = "tcp"

func (s *Server) acceptLoop(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // the listener is closed, or fails for good
		}
		s.acceptTCP(c)
	}
}

// acceptTCP connects a socket to a link, so that all faults work on it.
func (s *Server) acceptTCP(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.client(TCPClient)
	if s.closed || s.stopped || s.refusing || cl.refusing {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // the client sees a reset, which is closer to a refusal
		}
		_ = c.Close()
		return
	}
	end := s.open(cl, c, c.RemoteAddr())
	s.wg.Go(func() { bridgeUp(end, c) })
	s.wg.Go(func() { bridgeDown(end, c) })
}

// maxBridged is how many bytes of a TCP client wait in memory for the server. The
// rest waits in the kernel.
const maxBridged = 1 << 20

// bridgeUp carries bytes from the socket to the server until the socket ends. The
// other direction may go on.
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

// bridgeDown carries bytes to the socket until the server's stream ends, and then
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
