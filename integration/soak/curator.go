package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed Beside.java
var beside []byte

// startCurator starts a Java process that works on the same paths by Curator. The function
// ends it. Where Java or Debian's jars of Curator are missing it says so and does nothing.
func startCurator(ctx context.Context, servers string) (stop func() error, err error) {
	var jars []string
	for _, name := range []string{
		"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
		"guava", "slf4j-api", "slf4j-nop",
	} {
		jar := filepath.Join("/usr/share/java", name+".jar")
		if _, err := os.Stat(jar); err != nil {
			fmt.Println("no Curator beside:", err)
			return func() error { return nil }, nil
		}
		jars = append(jars, jar)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		fmt.Println("no Curator beside:", err)
		return func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return nil, err
	}
	source := filepath.Join(dir, "Beside.java")
	if err := os.WriteFile(source, beside, 0o600); err != nil {
		return nil, err
	}
	peer := exec.CommandContext(ctx, java, "-cp", strings.Join(jars, ":"), source, servers, root)
	peer.Stdout, peer.Stderr = os.Stdout, os.Stderr
	in, err := peer.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := peer.Start(); err != nil {
		return nil, err
	}
	return func() error {
		defer func() { _ = os.RemoveAll(dir) }()
		if err := in.Close(); err != nil {
			return err
		}
		if err := peer.Wait(); err != nil {
			return fmt.Errorf("the Java peer: %w", err)
		}
		return nil
	}, nil
}
