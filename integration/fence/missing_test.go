package fence_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
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

// A host without the servers fails, and says what to install.
func TestMissing(t *testing.T) {
	ended := &fatal{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		program(ended, "no-such-server", "/nonexistent")
	}()
	<-done
	if !strings.Contains(ended.said, "no-such-server") || !strings.Contains(ended.said, "scripts/databases.sh") {
		t.Errorf("it said %q", ended.said)
	}
}
