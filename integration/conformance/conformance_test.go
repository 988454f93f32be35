// Package conformance_test runs the conformance suite of zktest on a real
// server. The comparison of random sequences needs one that sees its clients
// under their own addresses, which a container's port proxy does not give; run
// it as DOCENT_ZK_DIFF=host:port go test -run TestDifferential ./zktest.
package conformance_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
)

func TestConformance(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithTickTime(time.Second),
		harness.WithExtendedTypes(), harness.WithContainerInterval(time.Second),
		harness.WithProperty("reconfigEnabled", "false"))
	measure(ctx, t, "^TestConform", "DOCENT_ZK="+node.Addr())
}

// measure runs those tests of zktest, which is in the core module, and wants
// them to have run.
func measure(ctx context.Context, t *testing.T, tests string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout", "8m", "-run", tests, "./zktest")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := string(out); !strings.Contains(text, "--- PASS") || strings.Contains(text, "--- SKIP") {
		t.Fatalf("nothing was measured:\n%s", text)
	}
	t.Logf("%d tests hold on a real server", strings.Count(string(out), "\n--- PASS"))
}
