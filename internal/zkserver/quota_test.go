package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

const quotaFolder = "/zookeeper/quota"

// setQuota makes the nodes of a quota.
func setQuota(t *testing.T, c *raw, path, limits string) {
	t.Helper()
	must(t, c, 1, body(quotaFolder+path, []byte{}, openACL, int32(0)), 0)
	must(t, c, 1, body(quotaFolder+path+"/zookeeper_limits", []byte(limits), openACL, int32(0)), 0)
	must(t, c, 1, body(quotaFolder+path+"/zookeeper_stats", []byte("count=0,bytes=0"), openACL, int32(0)), 0)
}

func dropQuota(t *testing.T, c *raw, path string) {
	t.Helper()
	for _, name := range []string{"/zookeeper_limits", "/zookeeper_stats", ""} {
		must(t, c, 2, body(quotaFolder+path+name, int32(-1)), 0)
	}
}

// usage is the text and the version of the usage node.
func usage(t *testing.T, c *raw, path string) (string, int32) {
	t.Helper()
	a := must(t, c, 4, exists(quotaFolder+path+"/zookeeper_stats"), 0)
	return (&dec{b: a.body}).text(), readStat(a.body).version
}

func wantUsage(t *testing.T, c *raw, path, want string) {
	t.Helper()
	if got, version := usage(t, c, path); got != want || version != 0 {
		t.Errorf("usage %q of version %d, want %q of version 0", got, version, want)
	}
}

// TestConformUsage checks what the server counts below a quota.
func TestConformUsage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		c, root := rawSession(t, srv.addr), srv.root
		must(t, c, 1, body(root+"/a", []byte("123"), openACL, int32(0)), 0)
		setQuota(t, c, root, "count=5,bytes=100")
		wantUsage(t, c, root, "count=2,bytes=3")
		must(t, c, 1, body(root+"/a/b", []byte("12"), openACL, int32(1)), 0)
		wantUsage(t, c, root, "count=3,bytes=5")
		must(t, c, 5, body(root+"/a", null{}, int32(-1)), 0)
		wantUsage(t, c, root, "count=3,bytes=2")
		must(t, c, 14, transaction(part(5, body(root+"/a", []byte("1234"), int32(-1))), part(1, create(root+"/c"))), 0)
		wantUsage(t, c, root, "count=4,bytes=6")
		must(t, c, -11, nil, 0) // deletes /a/b
		c = rawSession(t, srv.addr)
		wantUsage(t, c, root, "count=3,bytes=4")
		// The nearest quota counts alone.
		must(t, c, 1, body(quotaFolder+root+"/a", []byte{}, openACL, int32(0)), 0)
		must(t, c, 1, body(quotaFolder+root+"/a/zookeeper_limits", []byte("count=5,bytes=-1"), openACL, int32(0)), 0)
		must(t, c, 1, body(quotaFolder+root+"/a/zookeeper_stats", []byte{}, openACL, int32(0)), 0)
		must(t, c, 1, create(root+"/a/d"), 0)
		wantUsage(t, c, root+"/a", "count=2,bytes=4")
		wantUsage(t, c, root, "count=3,bytes=4")
		dropQuota(t, c, root+"/a")
		must(t, c, 2, body(root+"/a/d", int32(-1)), 0)
		wantUsage(t, c, root, "count=2,bytes=4")
		// Hard limits are numbers only, unless the server is told to enforce them.
		must(t, c, 5, body(quotaFolder+root+"/zookeeper_limits", []byte("count=-1,bytes=-1=;countHardLimit=1"), int32(-1)), 0)
		must(t, c, 1, create(root+"/e"), 0)
		dropQuota(t, c, root)
	})
}

// TestLoginQuota checks that hard limits hold on a server that enforces them. The servers
// with a login do.
func TestLoginQuota(t *testing.T) {
	t.Parallel()
	onLogin(t, loginOptional, func(t *testing.T, srv subject) {
		c, root := rawSession(t, srv.addr), srv.root
		setQuota(t, c, root, "count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=3")
		must(t, c, 1, body(root+"/1", []byte("1234"), openACL, int32(0)), 0)
		must(t, c, 1, create(root+"/2"), 0)
		must(t, c, 1, create(root+"/3"), -125)
		must(t, c, 15, create(root+"/3"), -125)
		must(t, c, 19, body(root+"/3", []byte{}, openACL, int32(4)), -125)
		must(t, c, 1, create(root+"/2"), -110)
		must(t, c, 5, body(root+"/2", []byte("1234567"), int32(-1)), -125)
		must(t, c, 5, body(root+"/2", []byte("1234567"), int32(7)), -125) // before the version
		must(t, c, 5, body(root+"/2", []byte("123456"), int32(-1)), 0)
		must(t, c, 5, body(root+"/1", []byte("123"), int32(-1)), 0)
		a := must(t, c, 14, transaction(part(5, body(root+"/1", []byte{}, int32(-1))), part(1, create(root+"/3"))), 0)
		if got := showShape(a.body); got != "err0 err-125 end" {
			t.Errorf("a transaction: %s", got)
		}
		wantUsage(t, c, root, "count=3,bytes=9")
		for _, limits := range []string{"nonsense", "count", "countHardLimit=x"} {
			must(t, c, 5, body(quotaFolder+root+"/zookeeper_limits", []byte(limits), int32(-1)), 0)
			must(t, c, 1, create(root+"/3"), -5)
		}
		for _, limits := range []string{"", "count=1,bytes=1", "countHardLimit==3", "countHardLimit=-1,,;byteHardLimit=-1"} {
			must(t, c, 5, body(quotaFolder+root+"/zookeeper_limits", []byte(limits), int32(-1)), 0)
			must(t, c, 1, create(root+"/3"), 0)
			must(t, c, 2, body(root+"/3", int32(-1)), 0)
		}
		dropQuota(t, c, root)
		must(t, c, 1, create(root+"/3"), 0)
	})
}

// TestQuotaEnsemble checks that followers count as the leader does, and that the member
// that comes back does.
func TestQuotaEnsemble(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		c := memory(t, e.Server(1).Client("a"))
		must(t, c, 1, create("/q"), 0)
		setQuota(t, c, "/q", "countHardLimit=2")
		must(t, c, 1, body("/q/1", []byte("xy"), openACL, int32(0)), 0)
		must(t, c, 1, create("/q/2"), -125)
		e.Server(2).Crash(0)
		e.Server(2).Resume()
		time.Sleep(time.Second) // longer than it takes to find the leader
		d := memory(t, e.Server(2).Client("a"))
		must(t, d, 9, body("/"), 0)
		wantUsage(t, d, "/q", "count=2,bytes=2")
	}, zktest.WithEnforcedQuotas())
}
