package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/kerberos"
)

// Defaults of --grace and --margin, which `docent check` looks at as well.
const (
	defaultGrace  = 3 * time.Second
	defaultMargin = time.Second
)

// target is the ensemble that a command talks to, and how.
type target struct {
	flags *pflag.FlagSet

	servers, namespace, name, config string
	timeout, connect                 time.Duration
	auth                             []string
	sasl                             login
	tls                              bool
	ca, cert, key, serverName        string
	verbose                          bool
}

// newTarget adds the flags of the connection.
func newTarget(flags *pflag.FlagSet) *target {
	t := &target{flags: flags}
	flags.StringVarP(&t.servers, "servers", "s", "127.0.0.1:2181", "ZooKeeper `host:port,...[/chroot]`")
	flags.StringVar(&t.namespace, "namespace", "", "prefix of all paths, as in Curator")
	flags.StringVar(&t.name, "name", "docent", "what the nodes of this process call their client")
	flags.DurationVar(&t.timeout, "session-timeout", client.DefaultSessionTimeout, "how long the servers wait for a client that is silent")
	flags.DurationVar(&t.connect, "connect-timeout", 10*time.Second, "how long to wait for the first connection")
	flags.StringArrayVar(&t.auth, "auth", nil, "credentials as `scheme:text`, for example digest:user:password; a file or the environment keeps them out of the process list")
	t.sasl.add(flags)
	flags.BoolVar(&t.tls, "tls", false, "encrypt the connection; any other --tls flag does as well")
	flags.StringVar(&t.ca, "tls-ca", "", "`file` with the certificates that sign the servers'")
	flags.StringVar(&t.cert, "tls-cert", "", "`file` with this client's certificate")
	flags.StringVar(&t.key, "tls-key", "", "`file` with the key of --tls-cert")
	flags.StringVar(&t.serverName, "tls-server-name", "", "name in the servers' certificates, if it is not that of --servers")
	flags.StringVar(&t.config, "config", "", "`file` of lines DOCENT_FLAG=value")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "write the client's log to standard error")
	return t
}

// variable is the name of the environment variable of a flag.
func variable(flag string) string {
	return "DOCENT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// complete sets each flag that was not given from the environment, or else from the file.
func (t *target) complete() error {
	if v, ok := os.LookupEnv(variable("config")); ok && !t.flags.Changed("config") {
		t.config = v
	}
	file, err := settings(t.config)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	t.flags.VisitAll(func(f *pflag.Flag) {
		known[variable(f.Name)] = true
		if err != nil || f.Changed || f.Name == "config" {
			return
		}
		value, ok := os.LookupEnv(variable(f.Name))
		from := "the environment"
		if !ok {
			value, ok = file[variable(f.Name)]
			from = t.config
		}
		if ok {
			if bad := t.flags.Set(f.Name, value); bad != nil {
				err = usageError("%s in %s: %w", variable(f.Name), from, bad)
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if err == nil && !known[name] {
			err = usageError("%s in %s: no such flag of a connection; `docent --help` lists them", name, t.config)
		}
	}
	return err
}

// settings reads a file of lines NAME=value. Empty lines, and those that begin
// with #, say nothing.
func settings(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file, no settings
	}
	f, err := os.Open(path) //nolint:gosec // the caller's own file
	if err != nil {
		return nil, usageError("--config: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	all := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !strings.HasPrefix(name, "DOCENT_") {
			return nil, usageError("%s:%d: a line is DOCENT_FLAG=value", path, n) // not the line: it may be a secret
		}
		all[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return all, lines.Err()
}

// options are those of the client. more come behind them.
func (t *target) options(log *slog.Logger, more ...client.Option) ([]client.Option, error) {
	opts := []client.Option{
		client.WithSessionTimeout(t.timeout), client.WithConnectTimeout(t.connect),
		client.WithName(nested(t.name, os.Getenv(outerSession))), client.WithLogger(log),
	}
	for _, a := range t.auth {
		scheme, text, ok := strings.Cut(a, ":")
		if !ok {
			return nil, usageError("--auth is scheme:text, for example digest:user:password")
		}
		opts = append(opts, client.WithAuth(scheme, text))
	}
	m, err := t.sasl.mechanism()
	if err != nil {
		return nil, err
	}
	if m != nil {
		opts = append(opts, client.WithSASL(m))
	}
	if t.encrypted() {
		cfg, err := t.tlsConfig()
		if err != nil {
			return nil, err
		}
		opts = append(opts, client.WithTLS(cfg))
	}
	if t.namespace != "" {
		opts = append(opts, client.WithNamespace(t.namespace))
	}
	return append(opts, more...), nil
}

// encrypted reports whether any flag asks for TLS.
func (t *target) encrypted() bool {
	return t.tls || t.ca != "" || t.cert != "" || t.key != "" || t.serverName != ""
}

func (t *target) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{ServerName: t.serverName, MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, usageError("--tls-ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usageError("--tls-ca: no certificate in %s; it must be PEM", t.ca)
		}
	}
	if (t.cert == "") != (t.key == "") {
		return nil, usageError("--tls-cert and --tls-key belong together")
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, usageError("--tls-cert, --tls-key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// dial connects. The caller closes the client.
func (t *target) dial(cmd *cobra.Command, more ...client.Option) (*client.Client, error) {
	if err := t.complete(); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	if t.verbose {
		log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	}
	opts, err := t.options(log, more...)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(cmd.Context(), t.servers, opts...)
	if err != nil {
		if errors.Is(err, client.ErrNotConnected) || errors.Is(err, client.ErrNoChroot) {
			err = fmt.Errorf("%w (--servers, DOCENT_SERVERS)", err)
		}
		return nil, err
	}
	return c, nil
}

// flagNames are the flags that set what options of the library set. The errors of the
// library name the options.
var flagNames = strings.NewReplacer(
	"client.WithAuth", "--auth", "WithAuth", "--auth",
	"client.WithSASL", "--sasl-user", "WithSASL", "--sasl-user",
	"WithSessionTimeout", "--session-timeout",
	"WithNamespace", "--namespace",
	"WithTLS", "--tls",
)

// login is how the command logs in.
type login struct {
	user, password           string
	principal, keytab, cache string
}

func (l *login) add(flags *pflag.FlagSet) {
	flags.StringVar(&l.user, "sasl-user", "", "log in as this `user` by DIGEST-MD5, with --sasl-password")
	flags.StringVar(&l.password, "sasl-password", "", "`password` of --sasl-user; a file or the environment keeps it out of the process list")
	flags.StringVar(&l.principal, "kerberos-principal", "", "log in as this `principal` by Kerberos, with --kerberos-keytab")
	flags.StringVar(&l.keytab, "kerberos-keytab", "", "`file` with the key of --kerberos-principal")
	flags.StringVar(&l.cache, "kerberos-cache", "", "log in by Kerberos with the tickets of kinit in this `file`")
}

// mechanism is nil without a login.
func (l *login) mechanism() (client.SASL, error) {
	digest, keytab, cache := l.user != "" || l.password != "", l.principal != "" || l.keytab != "", l.cache != ""
	switch {
	case digest && keytab, digest && cache, keytab && cache:
		return nil, usageError("--sasl-user, --kerberos-principal and --kerberos-cache are logins of their own: give one")
	case digest && (l.user == "" || l.password == ""):
		return nil, usageError("--sasl-user and --sasl-password belong together")
	case keytab && (l.principal == "" || l.keytab == ""):
		return nil, usageError("--kerberos-principal and --kerberos-keytab belong together")
	case digest:
		return client.DigestMD5(l.user, l.password), nil
	case keytab:
		return named(kerberos.Keytab(l.principal, l.keytab))
	case cache:
		return named(kerberos.CredentialCache(l.cache))
	}
	return nil, nil //nolint:nilnil // no login
}

func named(m *kerberos.Mechanism, err error) (client.SASL, error) {
	if err != nil {
		return nil, usageError("%w", err)
	}
	return m, nil
}

// connected calls f with a client, which is closed afterwards.
func (t *target) connected(cmd *cobra.Command, f func(context.Context, *client.Client) error) error {
	c, err := t.dial(cmd)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // what f did is done
	return f(cmd.Context(), c)
}
