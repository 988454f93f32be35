package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// address is a port of 127.0.0.1 that stays ours while no socket listens on it. So a
// refusing proxy really refuses, and no other process gets the port meanwhile. A
// bound socket that never listens shares the port with the listener.
type address struct {
	fd   int
	port int
}

func reserve() (*address, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	a := &address{fd: fd}
	if err := a.bind(); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return a, nil
}

func (a *address) bind() error {
	if err := unix.SetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(a.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	bound, err := unix.Getsockname(a.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	in4, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return fmt.Errorf("bound to %T, not to an IPv4 address", bound)
	}
	a.port = in4.Port
	return nil
}

func (a *address) String() string { return fmt.Sprintf("127.0.0.1:%d", a.port) }

func (a *address) listen() (net.Listener, error) {
	share := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, os.NewSyscallError("setsockopt", failed))
	}}
	return share.Listen(context.Background(), "tcp4", a.String()) // listening on an address literal waits for nothing
}

func (a *address) release() error { return os.NewSyscallError("close", unix.Close(a.fd)) }
