package containers_test

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// jars are Debian's, of the packages default-jdk-headless and libcurator-recipes-java. The
// manifests name the rest.
const jars = "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:" +
	"/usr/share/java/curator-client.jar:/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:" +
	"/usr/share/java/guava.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-simple.jar"

// TestCurator runs a program that uses Curator, with the connection string of the servers as
// its connectString. It takes the lock that a Docent client has held, and after that the
// leader is killed it takes it again.
func TestCurator(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := zkcontainer.StartEnsemble(t, cmp.Or(os.Getenv("ZOOKEEPER_IMAGE"), "zookeeper:3.9"), 3,
		zkcontainer.WithChroot("/shop"),
		zkcontainer.WithInitData(map[string][]byte{"/shop/orders": []byte("0")}))
	servers, err := e.ConnectionString(ctx)
	if err != nil {
		t.Fatal(err)
	}

	hold := acquire(t, connect(t, place{connect: servers}), "/locks/orders")
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if orders := order(ctx, t, servers); orders != "1" {
		t.Fatalf("Curator counts %q", orders)
	}

	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if orders := order(ctx, t, servers); orders != "2" {
		t.Fatalf("without server %d Curator counts %q", leader.ID(), orders)
	}
}

// order runs the program, which Java compiles itself.
func order(ctx context.Context, t *testing.T, servers string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "java", "-cp", jars, "Orders.java", servers)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v; is Curator there? apt-get install default-jdk-headless libcurator-recipes-java\n%s", err, &complaints)
	}
	return strings.TrimSpace(string(out))
}
