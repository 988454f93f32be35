// Package secure makes a client's TLS configuration from files that may be
// replaced while the client runs: docs/tls.md explains it.
package secure

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Config trusts servers that an authority in the file authority has signed, and
// shows them the certificate in the file cert. The files cert and key are read for
// every new connection.
//
//nolint:gosec // which files those are is the caller's business
func Config(authority, cert, key string) (*tls.Config, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in it", authority)
	}
	return &tls.Config{
		RootCAs: trusted,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(cert, key)
			return &pair, err
		},
	}, nil
}
