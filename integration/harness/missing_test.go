package harness_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/docent-go/docent/integration/harness"
)

// fatal is a test that remembers why it was ended.
type fatal struct {
	testing.TB
	said string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (f *fatal) Skip(...any) { panic("skipped") }

func TestHarnessMissing(t *testing.T) {
	for _, c := range []struct{ name, host, want string }{
		{"image", "", "scripts/zookeeper-image.sh"},
		{"engine", "unix:///nonexistent.sock", "apt-get install docker.io"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.host != "" {
				t.Setenv("DOCKER_HOST", c.host)
			}
			ended := &fatal{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				harness.StartServer(t.Context(), ended, harness.WithImage("docent/no-such-image"))
			}()
			<-done
			if !strings.Contains(ended.said, c.want) {
				t.Fatalf("no remedy with %q in: %q", c.want, ended.said)
			}
		})
	}
}
