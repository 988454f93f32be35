package tls_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docent-go/docent/integration/harness"
)

const page = "../../docs/tls.md"

// blocks are the blocks of docs/tls.md in that language.
func blocks(t *testing.T, language string, want int) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	check(t, err)
	var all []string
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue
		}
		if name, code, _ := strings.Cut(part, "\n"); name == language {
			all = append(all, code)
		}
	}
	if len(all) != want {
		t.Fatalf("%s has %d blocks in %s, not %d as this test knows", page, len(all), language, want)
	}
	return all
}

// The commands of docs/tls.md, in their order.
const (
	makeKeys = iota
	renewOrders
	showSubject
	commands
)

// shell runs commands of docs/tls.md in dir, changed by old and new, and returns
// what they print.
func shell(ctx context.Context, t *testing.T, dir string, which int, oldnew ...string) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatalf("%v\nRemedy: apt-get install openssl", err)
	}
	script := blocks(t, "sh", commands)[which]
	if changed := strings.NewReplacer(oldnew...).Replace(script); len(oldnew) > 0 && changed == script {
		t.Fatalf("the commands hold nothing of %q:\n%s", oldnew, script)
	} else {
		script = changed
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	var said bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("commands of %s: %v\n%s\n%s", page, err, script, &said)
	}
	return string(out)
}

// settings are the lines for zoo.cfg.
func settings(t *testing.T) (all []harness.Option) {
	t.Helper()
	for line := range strings.Lines(blocks(t, "properties", 1)[0]) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			t.Fatalf("%s: no setting: %q", page, line)
		}
		all = append(all, harness.WithProperty(key, value))
	}
	return all
}

// The code in docs/tls.md is that of the package which these tests use.
func TestDocCode(t *testing.T) {
	source, err := os.ReadFile("../../docs/examples/secure/config.go")
	check(t, err)
	_, want, ok := strings.Cut(string(source), "\nfunc Config(")
	if !ok {
		t.Fatal("docs/examples/secure/config.go has no func Config")
	}
	found := false
	for _, block := range blocks(t, "go", 4) {
		found = found || block == "func Config("+want
	}
	if !found {
		t.Errorf("%s quotes another code than that of docs/examples/secure/config.go:\nfunc Config(%s", page, want)
	}
}
