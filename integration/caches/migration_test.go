package caches_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// cachePackage are the public types of Curator's caches.
var cachePackage = []string{
	"CuratorCache", "CuratorCache$Options", "CuratorCacheAccessor", "CuratorCacheBuilder", "CuratorCacheBridgeBuilder",
	"CuratorCacheStorage", "CuratorCacheListener", "CuratorCacheListener$Type", "CuratorCacheListenerBuilder",
	"TreeCache", "TreeCache$Builder", "TreeCacheEvent", "TreeCacheEvent$Type", "TreeCacheSelector",
	"PathChildrenCache", "PathChildrenCache$StartMode", "PathChildrenCacheEvent", "PathChildrenCacheEvent$Type",
	"NodeCache", "NodeCacheListener",
}

// ofJava are names that Java gives every type of their kind.
var ofJava = map[string]bool{"values": true, "valueOf": true, "toString": true, "build": true}

// TestMigrationNamesEverything: docs/curator-caches.md names each public method and
// constant of Curator's package cache, as the installed jar has them.
func TestMigrationNamesEverything(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	page, err := os.ReadFile("../../docs/curator-caches.md")
	if err != nil {
		t.Fatal(err)
	}
	const jars = "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:/usr/share/java/curator-client.jar:/usr/share/java/guava.jar"
	args := []string{"-public", "-cp", jars}
	for _, name := range cachePackage {
		args = append(args, "org.apache.curator.framework.recipes.cache."+name)
	}
	said, err := exec.CommandContext(ctx, "javap", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("javap: %v\n%s\nRemedy: apt-get install default-jdk-headless libcurator-recipes-java", err, said)
	}
	member := regexp.MustCompile(`^  public .*?(\w+)(?:\(.*\).*)?;$`)
	found := 0
	for line := range strings.Lines(string(said)) {
		m := member.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || ofJava[m[1]] {
			continue
		}
		found++
		if !regexp.MustCompile(`\b` + m[1] + `\b`).Match(page) {
			t.Errorf("the page does not name %s:%s", m[1], line)
		}
	}
	t.Logf("%d methods and constants", found)
	if found < 100 {
		t.Errorf("javap names %d methods and constants only", found)
	}
}
