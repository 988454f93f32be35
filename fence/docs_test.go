package fence_test

import (
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/fence"
)

// docs/fencing-by-hand.md shows the statements that are run.
func TestDocsShowTheStatements(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/fencing-by-hand.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []fence.Dialect{fence.PostgreSQL, fence.MySQL, fence.SQLite} {
		shown := []string{d.Schema(), fence.Raise(d)}
		if d == fence.MySQL {
			shown = append(shown, fence.Newest(d))
		}
		for _, s := range shown {
			if s == "" || !strings.Contains(string(page), "```sql\n"+s+"\n```") {
				t.Errorf("%v: not shown:\n%s", d, s)
			}
		}
	}
}
