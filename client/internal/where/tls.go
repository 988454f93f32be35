package where

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// handshakeError is an error of the TLS handshake.
type handshakeError struct{ err error }

func (e handshakeError) Error() string { return "tls: " + strings.TrimPrefix(e.err.Error(), "tls: ") }
func (e handshakeError) Unwrap() error { return e.err }

// tlsRemedy is what to do about an error of TLS, or "" for other errors.
func tlsRemedy(err error) string {
	var handshake handshakeError
	var record tls.RecordHeaderError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &record):
		return "the port does not speak TLS: use the server's secureClientPort, or drop WithTLS"
	case errors.As(err, &host):
		return "the connect string names another host than the server's certificate: use a name of the certificate, or set tls.Config.ServerName"
	case errors.As(err, &authority):
		return "put the certificate of the server's authority into tls.Config.RootCAs"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server needs a new certificate, unless the clock of this machine is wrong"
	case errors.As(err, &handshake) && hungUp(err):
		return "the server closed the connection in the TLS handshake: use its secureClientPort, or drop WithTLS"
	default:
		return alertRemedy(err)
	}
}

// noCertificate is for a server that demands a certificate and names the authorities
// that it trusts.
const noCertificate = "the server got no client certificate: give tls.Config one that an authority in the server's ssl.trustStore " +
	"has signed; crypto/tls sends no other"

// alertRemedy explains what a server says about the client. crypto/tls does not
// export the type of an alert; the texts come from RFC 8446, section 6.2. A server
// that speaks TLS 1.3 refuses a certificate after the client's handshake has
// succeeded.
func alertRemedy(err error) string {
	var alert *net.OpError
	if !errors.As(err, &alert) || alert.Op != "remote error" {
		return ""
	}
	text := alert.Err.Error()
	switch {
	case strings.HasSuffix(text, "certificate required"):
		return noCertificate
	case strings.HasSuffix(text, "handshake failure"): // of TLS 1.2
		return noCertificate + "; or the two have no cipher in common"
	case strings.Contains(text, "certificate"):
		return "the server refuses the client's certificate: look whether it has expired, and whether an authority in the " +
			"server's ssl.trustStore has signed it"
	case strings.HasSuffix(text, "protocol version not supported"):
		return "tls.Config and the server's ssl.enabledProtocols have no version of TLS in common"
	default:
		return ""
	}
}

// hungUp reports whether the server closed the connection without an answer.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
