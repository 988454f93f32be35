package where

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"github.com/docent-go/docent/internal/wire"
)

// inHandshake is how wire begins errors of the handshake.
const inHandshake = "handshake: "

// inLogin is how it begins those of a login.
const inLogin = "login: "

// closedEarly are the reasons for which a server closes a connection in the handshake.
const closedEarly = "no quorum, a read-only server, too many connections from this host (maxClientCnxns), a throttle (connection_throttle_tokens), " +
	"a server with less data than this client has seen (restored, or started empty)"

// explain is the text of why a server is not reached, perhaps over TLS. It says what to do where the
// error alone does not.
func explain(err error, overTLS bool) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), inHandshake), inLogin)
	var op *net.OpError
	if errors.As(err, &op) && op.Op != "dial" { // the server is named already, and each dial has a port of its own
		text = strings.Replace(text, op.Error(), op.Op+": "+op.Err.Error(), 1)
	}
	if what := remedy(err, overTLS); what != "" {
		return text + " (" + what + ")"
	}
	return text
}

// remedy says what is likely wrong and what to do.
func remedy(err error, overTLS bool) string {
	var dns *net.DNSError
	var stranger *wire.StrangerError
	if errors.As(err, new(*wire.UnreadyError)) {
		return "" // it is no error of the server
	}
	if tls := tlsRemedy(err); tls != "" {
		return tls
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such name: check the connect string"
	case errors.As(err, &stranger):
		return unlike(stranger, overTLS)
	case errors.Is(err, wire.ErrReadOnly):
		return "another server may have the quorum; this one serves readers if its zoo.cfg has localSessionsEnabled=true and they use WithReadOnly"
	case errors.Is(err, wire.ErrHungUp) && !overTLS:
		return closedEarly + ", or a TLS port: WithTLS?"
	case errors.Is(err, wire.ErrHungUp):
		return closedEarly + ", or a certificate that the server refuses"
	case strings.Contains(err.Error(), "connection refused"):
		return "nothing listens there: is ZooKeeper running, is the port right?"
	case errors.Is(err, os.ErrDeadlineExceeded) && strings.HasPrefix(err.Error(), inHandshake):
		return "no answer to the handshake: is that the client port of a ZooKeeper, is the server alive?"
	case errors.Is(err, os.ErrDeadlineExceeded) && strings.HasPrefix(err.Error(), inLogin):
		return "the server took the handshake, and was silent in the login"
	case errors.Is(err, context.DeadlineExceeded) && strings.HasPrefix(err.Error(), "dial "):
		return "no answer: is the host up, does a firewall drop the packets?"
	default:
		return ""
	}
}

// unlike says what the peer is instead of a ZooKeeper.
func unlike(e *wire.StrangerError, overTLS bool) string {
	const port = ": not a ZooKeeper client port, check the connect string"
	switch {
	case e.TLS && !overTLS:
		return "answers in TLS: use WithTLS, or the server's plain clientPort"
	case strings.HasPrefix(e.Banner, "HTTP"):
		return "answers like an HTTP server" + port
	case strings.HasPrefix(e.Banner, "SSH-"):
		return "answers like an SSH server" + port
	case e.Banner != "":
		return "answers with text" + port
	default:
		return "answers in another protocol" + port
	}
}
