package peers

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed python/peer.py
var kazooSource embed.FS

const (
	// python is Debian's, the one for which Debian packages kazoo; the first on the
	// path may be another.
	python       = "/usr/bin/python3"
	pythonRemedy = "Remedy: apt-get install python3 python3-kazoo " +
		"(or run scripts/peers.sh from the repository's root)"
)

// StartKazoo starts a peer that uses kazoo. It ends the test when it cannot. ctx bounds
// the start only.
func StartKazoo(ctx context.Context, t testing.TB) *Peer {
	t.Helper()
	dir := kazooProgram(ctx, t, kazooSource)
	return startPeer(ctx, t, python, "-u", "-B", filepath.Join(dir, "python", "peer.py"))
}

// StartKazooScript runs a Python program that imports kazoo: the file main of fsys, which
// may import its neighbours. It ends the test when it cannot, with what to install if
// that is why. The program is killed when the test ends; if the test failed, the end of
// its log is printed. ctx bounds the start only.
func StartKazooScript(ctx context.Context, t testing.TB, fsys fs.FS, main string, args ...string) *Script {
	t.Helper()
	dir := kazooProgram(ctx, t, fsys)
	return startScript(ctx, t, python, append([]string{"-u", "-B", filepath.Join(dir, main)}, args...))
}

// kazooProgram makes sure that kazoo loads and puts a program where Python finds it.
func kazooProgram(ctx context.Context, t testing.TB, fsys fs.FS) string {
	t.Helper()
	if said, err := exec.CommandContext(ctx, python, "-c", "import kazoo.client").CombinedOutput(); err != nil {
		t.Fatalf("kazoo does not load: %v\n%s%s", err, said, pythonRemedy)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, fsys); err != nil {
		t.Fatal(err)
	}
	return dir
}
