package peers

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed java/*.java
var ownSources embed.FS

const (
	jarDirectory = "/usr/share/java"
	remedy       = "Remedy: apt-get install default-jdk-headless libcurator-recipes-java libcurator-discovery-java " +
		"(or run scripts/peers.sh from the repository's root)"
)

// classPath names Debian's jars. Their manifests name the rest (netty and the like).
func classPath() (string, error) {
	var paths []string
	for _, jar := range []string{
		"curator-x-discovery", "curator-recipes", "curator-framework", "curator-client", "zookeeper",
		"zookeeper-jute", "guava", "slf4j-api", "slf4j-simple", "jackson-databind", "jackson-core",
	} {
		path := filepath.Join(jarDirectory, jar+".jar")
		if _, err := os.Stat(path); err != nil {
			return "", err
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ":"), nil
}

// compiled returns the class path to run these sources with. It compiles them unless an
// earlier run did. It ends the test with the remedy when a part is missing.
func compiled(ctx context.Context, t testing.TB, sources fs.FS) string {
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
	classes, err := compileOnce(ctx, t, jars, sources)
	if err != nil {
		t.Fatalf("compile the Java peer: %v", err)
	}
	return classes + ":" + jars
}

// compileOnce compiles into a directory named after all that goes in. Two test
// binaries may do so at once: each compiles aside and the first to rename wins.
func compileOnce(ctx context.Context, t testing.TB, jars string, sources fs.FS) (string, error) {
	t.Helper()
	version, err := exec.CommandContext(ctx, "javac", "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac -version: %w: %s", err, version)
	}
	files, err := javaFiles(sources)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n%s\n", version, jars)
	for _, f := range files {
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", f.name, len(f.text), f.text)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = t.TempDir() // no home: compile each time
	}
	base = filepath.Join(base, "docent-peers")
	if err := os.MkdirAll(base, 0o755); err != nil { //nolint:gosec // holds nothing secret
		return "", err
	}
	final := filepath.Join(base, fmt.Sprintf("%x", sum.Sum(nil)[:12]))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	aside, err := os.MkdirTemp(base, "compiling-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(aside) }()
	args := []string{"-cp", jars, "-d", aside}
	for _, f := range files {
		path := filepath.Join(aside, f.name)
		if err := os.WriteFile(path, f.text, 0o600); err != nil {
			return "", err
		}
		args = append(args, path)
	}
	if said, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	if err := os.Rename(aside, final); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return final, nil
}

// javaFile is one source of a program. No two have the same name, whatever their packages.
type javaFile struct {
	name string
	text []byte
}

// javaFiles finds the sources wherever they are in fsys.
func javaFiles(fsys fs.FS) ([]javaFile, error) {
	var files []javaFile
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".java") {
			return err
		}
		text, err := fs.ReadFile(fsys, path)
		files = append(files, javaFile{name: d.Name(), text: text})
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("no Java sources")
	}
	return files, err
}
