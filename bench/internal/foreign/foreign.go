// Package foreign starts the contenders of peers in other languages, which follow the
// protocol of package load.
package foreign

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed java/*.java python/peer.py
var sources embed.FS

const (
	jarDirectory = "/usr/share/java"
	javaRemedy   = "Run: apt-get install --no-install-recommends default-jdk-headless libcurator-recipes-java"
	// python is Debian's, for which Debian packages kazoo; the first on the path may be
	// another.
	python       = "/usr/bin/python3"
	pythonRemedy = "Run: apt-get install --no-install-recommends python3 python3-kazoo"
)

// jars are Debian's. Their manifests name the rest.
func jars() (string, error) {
	var paths []string
	for _, jar := range []string{
		"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
		"guava", "slf4j-api", "slf4j-simple",
	} {
		path := filepath.Join(jarDirectory, jar+".jar")
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("a jar of Curator's is missing: %w. %s", err, javaRemedy)
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ":"), nil
}

// Curator compiles the Java peer below dir and returns the arguments that run it, and
// Curator's version.
func Curator(ctx context.Context, dir string) (args []string, version string, err error) {
	return java(ctx, dir, "Peer")
}

// CuratorCaches is the same of the program that has Curator's caches, which obeys the
// commands that package caches describes.
func CuratorCaches(ctx context.Context, dir string) (args []string, version string, err error) {
	return java(ctx, dir, "Caching")
}

// java compiles all the Java sources, and runs one class of them.
func java(ctx context.Context, dir, class string) (args []string, version string, err error) {
	path, err := jars()
	if err != nil {
		return nil, "", err
	}
	for _, tool := range []string{"java", "javac"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, "", fmt.Errorf("%w. %s", err, javaRemedy)
		}
	}
	dir = filepath.Join(dir, "curator")
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "java", "*.java"))
	if err != nil {
		return nil, "", err
	}
	classes := filepath.Join(dir, "classes")
	compile := exec.CommandContext(ctx, "javac", append([]string{"-cp", path, "-d", classes}, files...)...)
	if said, err := compile.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("compile the Java peer: %w\n%s", err, said)
	}
	args = []string{
		"java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-cp", classes + ":" + path, class,
	}
	return args, "Curator " + curatorVersion(), nil
}

// curatorVersion is in the other name of the jar.
func curatorVersion() string {
	const name, suffix = "curator-recipes-", ".jar"
	found, err := filepath.Glob(filepath.Join(jarDirectory, name+"*"+suffix))
	if err != nil || len(found) != 1 {
		return "of unknown version"
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), name), suffix)
}

// Kazoo puts the Python peer below dir and returns the arguments that run it, and
// kazoo's version.
func Kazoo(ctx context.Context, dir string) (args []string, version string, err error) {
	said, err := exec.CommandContext(ctx, python, "-c", "import kazoo.version as v; print(v.__version__)").CombinedOutput()
	if err != nil {
		return nil, "", fmt.Errorf("kazoo does not load: %w: %s. %s", err, strings.TrimSpace(string(said)), pythonRemedy)
	}
	dir = filepath.Join(dir, "kazoo")
	if err := os.CopyFS(dir, sources); err != nil {
		return nil, "", err
	}
	args = []string{python, "-u", "-B", filepath.Join(dir, "python", "peer.py")}
	return args, "kazoo " + strings.TrimSpace(string(said)), nil
}
