package sasl_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/recipes"
)

const users = `org.apache.zookeeper.server.auth.DigestLoginModule required
  user_docent="s3cret" user_other="pw2" "user_h\u00f6\u00df"="p\u00e4ssw\u00f6rd" "user_q\"b\\u"="p\"w\\d";`

// The users of the file whose names are not ASCII are written as they are.
func section() string {
	return strings.NewReplacer(`\u00f6`, "ö", `\u00df`, "ß", `\u00e4`, "ä").Replace(users)
}

func TestDigestMD5(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithJAAS(section(), true), harness.WithSystemProperty("file.encoding", "UTF-8"))
	t.Run("holds over cuts", func(t *testing.T) {
		holdsOverCuts(ctx, t, node, client.DigestMD5("docent", "s3cret"), "docent")
	})
	t.Run("without a login", func(t *testing.T) { refusedWithout(ctx, t, node) })
	t.Run("wrong password", func(t *testing.T) {
		_, err := connect(ctx, node.Addr(), client.WithSASL(client.DigestMD5("docent", "wrong-pa55")))
		if !errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), "DIGEST-MD5 with localhost:") || strings.Contains(err.Error(), "wrong-pa55") {
			t.Error(err)
		}
	})
	t.Run("names that are not simple", func(t *testing.T) {
		for user, password := range map[string]string{"höß": "pässwörd", `q"b\u`: `p"w\d`} {
			c, err := connect(ctx, node.Addr(), client.WithSASL(client.DigestMD5(user, password)))
			if err != nil {
				t.Error(err)
				continue
			}
			_ = c.Close()
		}
	})
	t.Run("another id", func(t *testing.T) {
		ours, theirs := connected(ctx, t, node.Addr(), client.WithSASL(client.DigestMD5("docent", "s3cret"))), connected(ctx, t, node.Addr(), client.WithSASL(client.DigestMD5("other", "pw2")))
		dir := path()
		hold, err := mutex(t, ours, dir).Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close() //nolint:errcheck // the client's end does the same
		if _, err := mutex(t, theirs, dir).Acquire(ctx); !errors.Is(err, client.ErrNoAuth) || !strings.Contains(err.Error(), `DIGEST-MD5 user "other"`) {
			t.Errorf("another id at the lock: %v", err)
		}
	})
	t.Run("Curator with the same id", func(t *testing.T) { curator(ctx, t, node) })
}

func mutex(t *testing.T, c *client.Client, dir string) *recipes.InterProcessMutex {
	t.Helper()
	m, err := recipes.NewInterProcessMutex(c, dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// curator takes turns at one lock with a Curator client that has the same id.
func curator(ctx context.Context, t *testing.T, node *harness.Node) {
	t.Helper()
	jaas := filepath.Join(t.TempDir(), "client.conf")
	text := "Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=\"docent\" password=\"s3cret\"; };\n"
	if err := os.WriteFile(jaas, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JAVA_TOOL_OPTIONS", "-Djava.security.auth.login.config="+jaas+" -Dzookeeper.fips-mode=false")
	java := peers.StartJava(ctx, t)
	if _, err := java.Connect(ctx, "c", node.Addr(), sessionTimeout); err != nil {
		t.Fatal(err)
	}
	c, dir := connected(ctx, t, node.Addr(), client.WithSASL(client.DigestMD5("docent", "s3cret"))), path()
	ours := mutex(t, c, dir)
	if err := java.Make(ctx, "theirs", "c", "mutex", dir); err != nil {
		t.Fatal(err)
	}
	theirs := java.Thread("one")
	for range 3 {
		hold, err := ours.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Acquire(ctx, "theirs", 1, 300*time.Millisecond); !errors.Is(err, peers.ErrTimeUp) {
			t.Fatalf("Curator beside our hold: %v", err)
		}
		if err := hold.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Acquire(ctx, "theirs", 1, peers.Forever); err != nil {
			t.Fatalf("Curator after our hold: %v", err)
		}
		short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		if _, err := ours.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("beside Curator's hold: %v", err)
		}
		stop()
		if err := theirs.Release(ctx, "theirs"); err != nil {
			t.Fatal(err)
		}
	}
}

// What servers do that let a client pass without a login.
func TestServersWithoutAProof(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	login := client.WithSASL(client.DigestMD5("docent", "wrong-pa55"))
	for name, tt := range map[string]struct {
		opts []harness.Option
		want string
	}{
		"no section": {nil, "offers no login"},
		"allowSaslFailedClients": {
			[]harness.Option{harness.WithJAAS(section(), false), harness.WithSystemProperty("zookeeper.allowSaslFailedClients", "true")},
			"without a proof",
		},
		"a login that is not required": {[]harness.Option{harness.WithJAAS(section(), false)}, "code -115"},
	} {
		t.Run(name, func(t *testing.T) {
			node := harness.StartServer(ctx, t, tt.opts...)
			if _, err := connect(ctx, node.Addr(), login); !errors.Is(err, client.ErrAuthFailed) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %q", err, tt.want)
			}
		})
	}
}
