package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// Label is on every container that the harness makes, beside the label of zkcontainer.
const Label = "docent.integration"

const (
	defaultImage = "zookeeper:3.9"
	cleanupLimit = time.Minute
)

// Image is the image that servers are started from: the environment's
// ZOOKEEPER_IMAGE, else the official zookeeper:3.9.
func Image() string { return cmp.Or(os.Getenv("ZOOKEEPER_IMAGE"), defaultImage) }

var engineOnce sync.Once //nolint:gochecknoglobals // what it guards is global: the environment and the logger

// needImage ends the test with the remedy when the Docker engine or the image is missing.
func needImage(ctx context.Context, t testing.TB, image string) {
	t.Helper()
	docker, err := client.New(client.FromEnv)
	if err == nil {
		_, err = docker.Ping(ctx, client.PingOptions{})
	}
	if err != nil {
		t.Fatalf("the Docker engine does not answer: %v\n"+
			"Remedy: install and start it (apt-get install docker.io; systemctl start docker) or set DOCKER_HOST.", err)
	}
	t.Cleanup(func() { _ = docker.Close() })
	if _, err = docker.ImageInspect(ctx, image); err != nil {
		t.Fatalf("the engine has no image %q: %v\n"+
			"Remedy: docker pull %s, or, without a registry, run from the repository's root:\n"+
			"\texport ZOOKEEPER_IMAGE=$(scripts/zookeeper-image.sh)", image, err, defaultImage)
	}
	engineOnce.Do(func() { // tests start servers side by side
		tclog.SetDefault(tclog.NewNoopLogger())
		disableReaper(ctx, t, docker)
	})
}

// disableReaper keeps testcontainers from pulling its reaper where the engine does
// not have it. testcontainers reads the variable once, at its first use, which is
// after this.
func disableReaper(ctx context.Context, t testing.TB, docker *client.Client) {
	t.Helper()
	const name = "TESTCONTAINERS_RYUK_DISABLED"
	if os.Getenv(name) != "" {
		return
	}
	if _, err := docker.ImageInspect(ctx, testcontainers.ReaperDefaultImage); err == nil { //nolint:staticcheck // its successor is not exported
		return
	}
	if err := os.Setenv(name, "true"); err != nil {
		t.Fatalf("set %s: %v", name, err)
	}
}

// cleanup runs f at the end of the test, with a context that the test's own end
// has not cancelled. It reports the error of f as the test's.
func cleanup(ctx context.Context, t testing.TB, what string, f func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
		defer cancel()
		if err := f(bounded); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	})
}

// labels marks what the harness makes with the test that made it.
func labels(t testing.TB) map[string]string {
	t.Helper()
	return map[string]string{Label: fmt.Sprintf("%s/%d", t.Name(), os.Getpid())}
}
