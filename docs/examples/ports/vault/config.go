package vault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-secure-stdlib/parseutil"
	"github.com/hashicorp/go-secure-stdlib/tlsutil"

	"github.com/docent-go/docent/client"
)

// sessionTimeout is what servers with a tickTime of 2 s grant to Vault's own backend.
const sessionTimeout = 4 * time.Second

// options are those of the client by Vault's settings.
func options(conf map[string]string, logger hclog.Logger) ([]client.Option, error) {
	entries, err := acl(conf)
	if err != nil {
		return nil, err
	}
	out := logger.StandardWriter(&hclog.StandardLoggerOptions{ForceLevel: hclog.Warn})
	opts := []client.Option{
		client.WithLazyConnect(),
		client.WithSessionTimeout(sessionTimeout),
		client.WithDefaultACL(entries...),
		client.WithLogger(slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}))),
	}
	if auth, set := conf["auth_info"]; set {
		scheme, credentials, err := pair("auth_info", auth)
		if err != nil {
			return nil, err
		}
		opts = append(opts, client.WithAuth(scheme, credentials))
	}
	encrypted, err := boolean(conf, "tls_enabled")
	if err != nil || !encrypted {
		return opts, err
	}
	cfg, err := tlsConfig(conf)
	return append(opts, client.WithTLS(cfg)), err
}

// tlsConfig has Vault's settings. The name in a certificate is that of the setting address.
func tlsConfig(conf map[string]string) (*tls.Config, error) {
	byIP, err := boolean(conf, "tls_verify_ip")
	if err != nil {
		return nil, err
	}
	if byIP {
		return nil, errors.New("tls_verify_ip is not supported: give the IPs of the servers as address")
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.InsecureSkipVerify, err = boolean(conf, "tls_skip_verify"); err != nil {
		return nil, err
	}
	if least, set := conf["tls_min_version"]; set {
		if cfg.MinVersion, set = tlsutil.TLSLookup[least]; !set {
			return nil, fmt.Errorf("invalid tls_min_version %q", least)
		}
	}
	if cert, key := conf["tls_cert_file"], conf["tls_key_file"]; cert != "" && key != "" {
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("client tls setup failed: %w", err)
		}
		cfg.Certificates = []tls.Certificate{own}
	}
	if file, set := conf["tls_ca_file"]; set {
		pem, err := os.ReadFile(file) //nolint:gosec // the administrator names the file
		if err != nil {
			return nil, fmt.Errorf("failed to read the CA file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in %s", file)
		}
	}
	return cfg, nil
}

// boolean reads a setting that is false if it is empty or missing.
func boolean(conf map[string]string, name string) (bool, error) {
	if conf[name] == "" {
		return false, nil
	}
	on, err := parseutil.ParseBool(conf[name])
	if err != nil {
		return false, fmt.Errorf("failed parsing %s parameter: %w", name, err)
	}
	return on, nil
}
