package zkserver_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// The TestConform tests hold for any server of the releases that zktest knows.
// They run on zktest as each of them, and on a real server alone when DOCENT_ZK
// names one. That server is standalone, with a tick of one second and containers
// checked every second. Extended types and all four-letter words are enabled.

// realServer names the environment variable with the host:port of a real server.
const realServer = "DOCENT_ZK"

// releases are the releases that have been compared with a running server.
func releases() []zktest.Version {
	return []zktest.Version{zktest.ZooKeeper380, zktest.ZooKeeper384, zktest.ZooKeeper39}
}

var lastRoot atomic.Int64 // keeps the roots of parallel tests apart

// subject is a server under test and a path of the test's own on it.
type subject struct {
	addr, root string
	version    zktest.Version
}

// onEach runs a test on the real server, or on zktest as each release.
func onEach(t *testing.T, test func(*testing.T, subject)) {
	t.Helper()
	if addr := os.Getenv(realServer); addr != "" {
		test(t, newSubject(t, addr))
		return
	}
	for _, v := range releases() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			test(t, newSubject(t, zktest.NewServer(t, zktest.WithTick(time.Second), zktest.WithExtendedTypes(),
				zktest.WithContainerInterval(time.Second), zktest.WithVersion(v)).Addr()))
		})
	}
}

func newSubject(t *testing.T, addr string) subject {
	t.Helper()
	root := fmt.Sprintf("/conf%d-%d", time.Now().UnixNano(), lastRoot.Add(1))
	c := rawSession(t, addr)
	must(t, c, 1, create(root), 0)
	must(t, c, -11, nil, 0)
	return subject{addr, root, releaseOf(t, addr)}
}

// releaseOf asks a server, real or not, for the version that describes it.
func releaseOf(tb testing.TB, addr string) zktest.Version {
	tb.Helper()
	v, err := zktest.ParseVersion(word(tb, addr, "srvr"))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
