package zkserver

import (
	"errors"
	"net"
	"time"

	"github.com/docent-go/docent/internal/zkserver/pipe"
)

// ErrListening is the error of a second [Server.Listen].
var ErrListening = errors.New("the server listens already")

// Listen makes the server reachable over TCP, once it runs if it is stopped. The error is
// that of [net.Listen], [ErrListening], or [net.ErrClosed] after Close; nothing has
// changed then.
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
	case s.address != nil:
		err = ErrListening
	}
	if err != nil {
		_ = l.Close() // it was never used
		return nil, err
	}
	s.address = l.Addr()
	s.take(l)
	return s.address, nil
}

// take begins to accept from l, unless the server is down. The mutex is held.
func (s *Server) take(l net.Listener) {
	if s.closed || s.stopped || s.listener != nil {
		_ = l.Close() // nobody has dialed it
		return
	}
	s.listener = l
	s.wg.Go(func() { s.acceptLoop(l) })
}

// ListenAddr returns the address of Listen, or nil. A server that is stopped keeps it.
func (s *Server) ListenAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// closePort ends listening: dials are refused.
func (s *Server) closePort() {
	s.mu.Lock()
	l := s.listener
	s.listener = nil
	s.mu.Unlock()
	if l != nil {
		_ = l.Close() // its accept loop ends either way
	}
}

// openPort listens again after closePort. If another process has taken the port, the
// server listens as soon as that is free.
func (s *Server) openPort() {
	if s.tryPort() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.wg.Go(func() {
		for !s.tryPort() {
			select {
			case <-time.After(portPause):
			case <-s.ctx.Done():
				return
			}
		}
	})
}

const portPause = 10 * time.Millisecond // until a port that is taken is tried again

// tryPort reports whether the server needs no port, or has it.
func (s *Server) tryPort() bool {
	s.mu.Lock()
	address := s.address
	done := address == nil || s.closed || s.stopped || s.listener != nil
	s.mu.Unlock()
	if done {
		return true
	}
	l, err := net.Listen("tcp", address.String())
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(l)
	return true
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
func bridgeUp(end *pipe.End, c net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			_, _ = end.Write(buf[:n]) // fails only after bridgeDown is done
			end.Out.AwaitRoom(maxBridged)
		}
		if err != nil {
			end.Out.CloseWrite()
			return
		}
	}
}

// bridgeDown carries bytes to the socket until the server's stream ends, and then
// closes both.
func bridgeDown(end *pipe.End, c net.Conn) {
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
