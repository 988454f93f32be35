package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// What `docent check` asks the servers themselves, beside a session.

// wordLimit is how long a server may take for a four-letter word, which it may not be
// configured to answer.
const wordLimit = 2 * time.Second

// speak opens a connection to one server, as encrypted as those of the client.
func (t *target) speak(ctx context.Context, server string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, wordLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil || !t.encrypted() {
		return conn, err
	}
	cfg, err := t.tlsConfig()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(server)
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// word asks one server a four-letter word. The answer is "" if the server has none.
func (t *target) word(ctx context.Context, server, word string) string {
	conn, err := t.speak(ctx, server)
	if err != nil {
		return ""
	}
	defer conn.Close() //nolint:errcheck // its answer is read
	_ = conn.SetDeadline(time.Now().Add(wordLimit))
	_, _ = io.WriteString(conn, word)
	text, _ := io.ReadAll(io.LimitReader(conn, 1<<16))
	return string(text)
}

// value is what stands behind a name in the lines of an answer, up to the end of the line.
func value(answer, name string) string {
	for line := range strings.Lines(answer) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// about says what a server is: its version and its part in the ensemble.
func (t *target) about(ctx context.Context, server string) string {
	answer := t.word(ctx, server, "srvr")
	version, _, _ := strings.Cut(value(answer, "Zookeeper version:"), ",")
	return strings.TrimSpace(version + " " + value(answer, "Mode:"))
}

// each connects to one server after the other.
func (t *target) each(cmd *cobra.Command, c *client.Client) (all []finding) {
	servers := c.Servers()
	if len(servers) == 1 {
		return nil
	}
	slices.Sort(servers)
	for _, server := range servers {
		one := *t
		one.servers = server + t.chroot()
		f := finding{"server " + server, good, "answers"}
		if alone, err := one.dial(cmd); err != nil {
			f.Result, f.Detail = fail, err.Error()
		} else {
			_ = alone.Close()
			if what := t.about(cmd.Context(), server); what != "" {
				f.Detail += ": " + what
			}
		}
		all = append(all, f)
	}
	return all
}

// chroot is that of the connect string, "" without one.
func (t *target) chroot() string {
	if i := strings.IndexByte(t.servers, '/'); i >= 0 {
		return t.servers[i:]
	}
	return ""
}

// encryption says whether others can read what goes to the servers, and how long the
// certificates are valid.
func (t *target) encryption(ctx context.Context, c *client.Client) finding {
	f := finding{"encryption", good, "off"}
	if !t.encrypted() {
		switch {
		case len(t.auth) > 0:
			f.Result = warn
			f.Detail += ": credentials go to the servers in clear; see --tls-ca"
		case t.sasl.user != "":
			f.Result = warn
			f.Detail += ": all but the password goes to the servers in clear, and from the login it can be guessed; see --tls-ca"
		}
		return f
	}
	var state tls.ConnectionState
	err := errors.New("no server")
	for _, server := range c.Servers() {
		var conn net.Conn
		if conn, err = t.speak(ctx, server); err == nil {
			if secure, ok := conn.(*tls.Conn); ok {
				state = secure.ConnectionState()
			}
			_ = conn.Close()
			break
		}
	}
	if err != nil || len(state.PeerCertificates) == 0 {
		return finding{f.Check, fail, fmt.Sprintf("no server could be asked for its certificate: %v", err)}
	}
	end := state.PeerCertificates[0].NotAfter
	whose := "the server's"
	if own := t.certificateEnd(); !own.IsZero() && own.Before(end) {
		end, whose = own, "--tls-cert"
	}
	f.Detail = fmt.Sprintf("%s; the certificate that ends first is %s, on %s", tls.VersionName(state.Version), whose, end.UTC().Format(time.DateOnly))
	if time.Until(end) < soon {
		f.Result = warn
		f.Detail += ": replace it"
	}
	return f
}

// soon is how long before its end a certificate is to be replaced.
const soon = 30 * 24 * time.Hour

// certificateEnd is when this client's own certificate ends, zero without one.
func (t *target) certificateEnd() time.Time {
	cfg, err := t.tlsConfig()
	if err != nil || len(cfg.Certificates) == 0 || cfg.Certificates[0].Leaf == nil {
		return time.Time{}
	}
	return cfg.Certificates[0].Leaf.NotAfter
}

// assumedTick is the tickTime that LeasePolicy assumes, or less.
const assumedTick = 2 * time.Second

// lease says whether the session timeout leaves `docent run` the time to end a command, and
// whether the servers' tick is what the lease assumes.
func (t *target) lease(cmd *cobra.Command, c *client.Client, granted time.Duration) finding {
	f := finding{"lease", good, ""}
	policy := client.LeasePolicy{SafetyMargin: defaultGrace + defaultMargin}
	probe, err := t.dial(cmd, client.WithLeasePolicy(policy))
	switch {
	case errors.Is(err, client.ErrUnsafeTimeout):
		return finding{f.Check, warn, fmt.Sprintf("docent run needs a shorter --grace or --margin than %v and %v, or a longer timeout: %v", defaultGrace, defaultMargin, err)}
	case err != nil:
		return finding{f.Check, fail, err.Error()}
	}
	_ = probe.Close()
	f.Detail = fmt.Sprintf("docent run has %v to end a command; heartbeats every %v", defaultGrace+defaultMargin, client.LeasePolicy{}.Period(granted).Round(time.Millisecond))
	for _, server := range c.Servers() {
		ms, err := strconv.Atoi(value(t.word(cmd.Context(), server, "conf"), "tickTime="))
		if err != nil {
			continue // the word is not allowed there
		}
		tick := time.Duration(ms) * time.Millisecond
		if tick > min(assumedTick, granted/2) {
			return finding{f.Check, warn, fmt.Sprintf("the tickTime of %s is %v: a lease that assumes %v ends too late; docent run needs --tick-time, and programs LeasePolicy.TickTime", server, tick, min(assumedTick, granted/2))}
		}
		f.Detail += fmt.Sprintf("; tickTime %v", tick)
		return f
	}
	f.Detail += "; no server tells its tickTime (conf), which is to be 2s or less"
	return f
}
