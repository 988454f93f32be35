package zkcontainer_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Flags of the caller's for the virtual machine stand behind this package's, which hold the
// superuser and the users.
func TestFlagsOfTheCaller(t *testing.T) {
	t.Parallel()
	for _, req := range must(zkcontainer.Requests(2, zkcontainer.WithSuperuser("secret"),
		testcontainers.WithEnv(map[string]string{"JVMFLAGS": "-Xmx999m", "OTHER": "1"})))(t) {
		flags := req.Env["JVMFLAGS"]
		if !strings.Contains(flags, "superDigest=super:") || !strings.HasSuffix(flags, " -Xmx999m") || req.Env["OTHER"] != "1" {
			t.Errorf("%v", req.Env)
		}
	}
}

// A file of the caller's that can be read once reaches every member, and an attempt after a
// port was taken.
func TestFilesOfTheCaller(t *testing.T) {
	t.Parallel()
	opt := testcontainers.WithFiles(testcontainers.ContainerFile{
		Reader: io.MultiReader(strings.NewReader("some"), strings.NewReader("thing")), ContainerFilePath: "/file", FileMode: 0o644,
	})
	found := 0
	for _, req := range must(zkcontainer.Requests(3, opt))(t) {
		for _, f := range req.Files {
			if f.ContainerFilePath != "/file" {
				continue
			}
			found++
			if got := must(io.ReadAll(f.Reader))(t); !bytes.Equal(got, []byte("something")) {
				t.Errorf("member %d gets %q", found, got)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d members get the file", found)
	}
}

// Keys are asked for once a server, one after the other: the function need not be safe for
// concurrent use, and two files of one server are of one pair.
func TestKeysAreAskedForOnce(t *testing.T) {
	t.Parallel()
	asked := map[int]int{}
	must(zkcontainer.Requests(3, zkcontainer.WithTLSKeys(func(id int) zkcontainer.Keys {
		asked[id]++
		return zkcontainer.Keys{}
	})))(t)
	for id := 1; id <= 3; id++ {
		if asked[id] != 1 {
			t.Errorf("asked for: %v", asked)
		}
	}
}

// Ports are published where clients look for them.
func TestPublishedAt(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "127.0.0.2": "127.0.0.2", "::1": "::1",
		"10.0.0.7": "0.0.0.0", "engine.example.com": "0.0.0.0",
	} {
		req := must(zkcontainer.Requests(1, zkcontainer.WithHost(host)))(t)[0]
		var h container.HostConfig
		req.HostConfigModifier(&h)
		if at := h.PortBindings[network.MustParsePort("2181/tcp")]; len(at) != 1 || at[0].HostIP.String() != want {
			t.Errorf("for %s ports are published at %v, want %s", host, at, want)
		}
	}
}

// Hooks of the caller's in a slice with room behind them are not where those of every member go.
func TestHooksOfTheCaller(t *testing.T) {
	t.Parallel()
	hooks := make([]testcontainers.ContainerLifecycleHooks, 1, 9)
	all := must(zkcontainer.Requests(2, testcontainers.WithLifecycleHooks(hooks...)))(t)
	for _, req := range all {
		if len(req.LifecycleHooks) != 2 {
			t.Fatalf("%d hooks", len(req.LifecycleHooks))
		}
	}
	if &all[0].LifecycleHooks[1] == &all[1].LifecycleHooks[1] {
		t.Error("the members share a hook")
	}
}
