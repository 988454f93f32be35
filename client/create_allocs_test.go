package client_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// moreCreateAllocations is how many more allocations than go-zookeeper a create with
// its list and the delete of the node may make. Both send the same three requests to
// the same server in the same process, so its allocations are not in the difference.
// It is -16, and about -13.5 under the race detector, which makes a sync.Pool forget at random.
const moreCreateAllocations = -13

func TestAllocationsOfACreate(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	srv := zktest.NewServer(t, zktest.WithLogSize(0))
	c, err := client.Connect(t.Context(), "zk", client.WithDialer(srv.Client("docent").DialContext), testrig.Quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseContext(t.Context()) //nolint:errcheck // the test is over
	if err := srv.Create("/locks", nil); err != nil {
		t.Fatal(err)
	}
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := testing.AllocsPerRun(500, func() {
		e, err := inner.CreateAndList(t.Context(), s, newNode{Dir: "/locks", Prefix: "lock-", List: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), e.Path, client.AnyVersion); err != nil {
			t.Fatal(err)
		}
	})
	conn, acl := c.Conn(), zk.WorldACL(zk.PermAll)
	raw := testing.AllocsPerRun(500, func() {
		path, err := conn.Create("/locks/lock-", nil, zk.FlagEphemeral|zk.FlagSequence, acl)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.Children("/locks"); err != nil {
			t.Fatal(err)
		}
		if err := conn.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("allocations: %v, of go-zookeeper %v, both with the server's", own, raw)
	if more := own - raw; more > moreCreateAllocations {
		t.Errorf("a create with its list and a delete allocate %v times more often than go-zookeeper's, want %d at most", more, moreCreateAllocations)
	}
}
