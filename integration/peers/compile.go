package peers

import (
	"context"
	"crypto/sha256"
	_ "embed" // java/Peer.java
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed java/Peer.java
var source []byte

const (
	jarDirectory = "/usr/share/java"
	remedy       = "Remedy: apt-get install default-jdk-headless libcurator-recipes-java " +
		"(or run scripts/peers.sh from the repository's root)"
)

// classPath names Debian's jars. Their manifests name the rest (netty and the like).
func classPath() (string, error) {
	var paths []string
	for _, jar := range []string{
		"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
		"guava", "slf4j-api", "slf4j-simple",
	} {
		path := filepath.Join(jarDirectory, jar+".jar")
		if _, err := os.Stat(path); err != nil {
			return "", err
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ":"), nil
}

// compiled returns the class path to run the peer with, having compiled it unless an
// earlier run did. It ends the test with the remedy when a part is missing.
func compiled(ctx context.Context, t testing.TB) string {
	t.Helper()
	jars, err := classPath()
	if err != nil {
		t.Fatalf("a jar of Curator's is missing: %v\n%s", err, remedy)
	}
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v\n%s", err, remedy)
		}
	}
	classes, err := compileOnce(ctx, t, jars)
	if err != nil {
		t.Fatalf("compile the Java peer: %v", err)
	}
	return classes + ":" + jars
}

// compileOnce compiles into a directory named after all that goes in. Two test
// binaries may do so at once: each compiles aside and the first to rename wins.
func compileOnce(ctx context.Context, t testing.TB, jars string) (string, error) {
	t.Helper()
	version, err := exec.CommandContext(ctx, "javac", "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac -version: %w: %s", err, version)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", version, jars, source))
	base, err := os.UserCacheDir()
	if err != nil {
		base = t.TempDir() // no home: compile each time
	}
	base = filepath.Join(base, "docent-peers")
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // holds nothing secret
		return "", err
	}
	final := filepath.Join(base, fmt.Sprintf("%x", sum[:12]))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	aside, err := os.MkdirTemp(base, "compiling-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	file := filepath.Join(aside, "Peer.java")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return "", err
	}
	if said, err := exec.CommandContext(ctx, "javac", "-cp", jars, "-d", aside, file).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	if err := os.Rename(aside, final); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return final, nil
}
