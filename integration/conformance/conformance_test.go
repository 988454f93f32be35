// Package conformance_test runs the conformance suite of zktest on a real server,
// which the suite asks for its release. `make differential` compares random
// sequences. It needs a server that sees its clients under their own addresses,
// which a container's port proxy does not give.
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
	measure(ctx, t, "^TestConform", "DOCENT_ZK="+server(ctx, t).Addr())
}

// TestWords compares what a new server answers to the four-letter words with what
// zktest is held to.
func TestWords(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	measure(ctx, t, "^TestWords$", "DOCENT_ZK="+server(ctx, t).Addr())
}

// TestReleases compares what a new server does where releases differ with what
// zktest does as that release.
func TestReleases(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	measure(ctx, t, "^TestReleases$", "DOCENT_ZK="+server(ctx, t).Addr())
}

// TestLogins runs the tests of logins on servers of every kind that they know.
func TestLogins(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var env []string
	for kind, options := range map[string][]harness.Option{
		"OPTIONAL":  nil,
		"REQUIRED":  {harness.WithRequiredLogin()},
		"EITHER":    {harness.WithProperty("enforce.auth.enabled", "true"), harness.WithProperty("enforce.auth.schemes", "sasl,digest")},
		"FORGIVING": {harness.WithSystemProperty("zookeeper.allowSaslFailedClients", "true")},
		"NOSCHEME":  {harness.WithoutLoginScheme()},
	} {
		srv := server(ctx, t, append([]harness.Option{
			harness.WithUsers(map[string]string{
				"docent": "s3cret", "other": "pw2", "super": "adminpw", "höß": "pässwörd", "€uro": "€", "at@realm": "pw3",
			}),
			harness.WithSystemProperty("zookeeper.enforceQuota", "true"),
		}, options...)...)
		env = append(env, "DOCENT_ZK_LOGIN_"+kind+"="+srv.Addr())
	}
	measure(ctx, t, "^TestLogin", append(env, "DOCENT_ZK="+server(ctx, t).Addr())...)
}

// server starts what the tests of zktest ask for.
func server(ctx context.Context, t *testing.T, options ...harness.Option) *harness.Node {
	t.Helper()
	return harness.StartServer(ctx, t, append([]harness.Option{
		harness.WithTickTime(time.Second),
		harness.WithExtendedTypes(), harness.WithContainerInterval(time.Second),
		harness.WithProperty("reconfigEnabled", "false"),
	}, options...)...)
}

// measure runs the given tests of zktest's engine in the core module, and wants
// them to have run.
func measure(ctx context.Context, t *testing.T, tests string, env ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout", "8m", "-run", tests, "./internal/zkserver")
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
