//go:build foreign

package foreign_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/zktest"
)

const (
	tick     = 500 * time.Millisecond
	runLimit = 8 * time.Minute // a busy machine may need four times what an idle one does
	// noSweep keeps containers where they are for as long as a program runs.
	noSweep = 10 * time.Minute
)

// settings are what a program wants of its server beyond the defaults.
type settings struct {
	sweep time.Duration // zero: none
}

func (s settings) interval() time.Duration {
	if s.sweep == 0 {
		return noSweep
	}
	return s.sweep
}

// server is where a program runs: a server with a proxy before it.
type server struct {
	name    string
	addr    string
	version zktest.Version
	proxy   *proxy.Proxy
}

// startBoth starts a real server and then zktest, which behaves as the release of
// that server does.
func startBoth(ctx context.Context, t *testing.T, s settings) [2]*server {
	t.Helper()
	zookeeper := startReal(ctx, t, s)
	answer, err := zookeeper.word(ctx, "srvr")
	if err != nil {
		t.Fatal(err)
	}
	if zookeeper.version, err = zktest.ParseVersion(answer); err != nil {
		t.Fatal(err)
	}
	t.Logf("compared with zktest as %v", zookeeper.version)
	return [2]*server{zookeeper, startZktest(t, s, zookeeper.version)}
}

func startReal(ctx context.Context, t *testing.T, s settings) *server {
	t.Helper()
	node := harness.StartServer(ctx, t, harness.WithTickTime(tick), harness.WithExtendedTypes(),
		harness.WithProperty("reconfigEnabled", "false"), // as zktest, and ZooKeeper's own default
		harness.WithContainerInterval(s.interval()))
	return &server{name: "ZooKeeper", addr: node.Addr(), proxy: proxy.Start(t, node.Addr())}
}

func startZktest(t *testing.T, s settings, version zktest.Version) *server {
	t.Helper()
	srv, err := zktest.Start(zktest.WithTick(tick), zktest.WithExtendedTypes(), zktest.WithContainerInterval(s.interval()),
		zktest.WithVersion(version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("close zktest: %v", err)
		}
	})
	addr, err := srv.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &server{name: "zktest", addr: addr.String(), version: version, proxy: proxy.Start(t, addr.String())}
}

// word sends a four-letter word to the server itself.
func (s *server) word(ctx context.Context, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", fmt.Errorf("%s: %w", word, err)
	}
	return string(answer), nil
}
