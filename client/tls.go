package client

import (
	"crypto/tls"
	"errors"
)

// WithTLS encrypts every connection. If ServerName is not set, the host of the
// connect string takes its place. So certificates are checked against the configured
// name and not against the address that it resolves to.
//
// The functions of cfg, such as GetClientCertificate, are called for every new
// connection, so they can read files that have changed meanwhile. docs/tls.md has
// that code, the servers' settings, and ACLs for certificates.
func WithTLS(cfg *tls.Config) Option {
	return optionFunc(func(c *config) error {
		if cfg == nil {
			return errors.New("client: WithTLS needs a *tls.Config")
		}
		c.tls = cfg.Clone()
		return nil
	})
}
