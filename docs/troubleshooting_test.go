package docs_test

import (
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/fence"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/recipes/shared"
)

// sentinels are the errors that programs compare with, by their names.
var sentinels = map[string]error{
	"client.ErrNoNode": client.ErrNoNode, "client.ErrNodeExists": client.ErrNodeExists,
	"client.ErrNotEmpty": client.ErrNotEmpty, "client.ErrBadVersion": client.ErrBadVersion,
	"client.ErrNoAuth": client.ErrNoAuth, "client.ErrInvalidACL": client.ErrInvalidACL,
	"client.ErrNoChildrenForEphemerals": client.ErrNoChildrenForEphemerals,
	"client.ErrThrottled":               client.ErrThrottled, "client.ErrQuotaExceeded": client.ErrQuotaExceeded,
	"client.ErrClosed": client.ErrClosed, "client.ErrSessionLost": client.ErrSessionLost,
	"client.ErrNotConnected": client.ErrNotConnected, "client.ErrInvalidPath": client.ErrInvalidPath,
	"client.ErrTooLarge": client.ErrTooLarge, "client.ErrReplyTooLarge": client.ErrReplyTooLarge,
	"client.ErrAuthFailed": client.ErrAuthFailed, "client.ErrNoChroot": client.ErrNoChroot, "client.ErrReadOnly": client.ErrReadOnly,
	"client.ErrOverflow": client.ErrOverflow, "client.ErrUnsupported": client.ErrUnsupported,
	"client.ErrUnsafeTimeout": client.ErrUnsafeTimeout, "client.ErrLeaseExpired": client.ErrLeaseExpired,
	"recipes.ErrBusy": recipes.ErrBusy, "recipes.ErrLost": recipes.ErrLost, "recipes.ErrReleased": recipes.ErrReleased,
	"recipes.ErrNodeDeleted": recipes.ErrNodeDeleted, "recipes.ErrSequenceExhausted": recipes.ErrSequenceExhausted,
	"recipes.ErrForeignLock": recipes.ErrForeignLock, "recipes.ErrWouldDeadlock": recipes.ErrWouldDeadlock,
	"recipes.ErrSeveralSessions": recipes.ErrSeveralSessions, "recipes.ErrTooManyPermits": recipes.ErrTooManyPermits,
	"recipes.ErrOtherLock": recipes.ErrOtherLock, "recipes.ErrNoParticipant": recipes.ErrNoParticipant,
	"recipes.ErrNotMovable": recipes.ErrNotMovable,
	"shared.ErrCountData":   shared.ErrCountData, "shared.ErrContended": shared.ErrContended,
	"shared.ErrOverflow": shared.ErrOverflow, "shared.ErrSequenceReplaced": shared.ErrSequenceReplaced,
	"barrier.ErrNodeDeleted": barrier.ErrNodeDeleted, "barrier.ErrLeft": barrier.ErrLeft, "barrier.ErrMemberCount": barrier.ErrMemberCount,
	"cache.ErrClosed": cache.ErrClosed, "cache.ErrLimit": cache.ErrLimit,
	"discovery.ErrClosed": discovery.ErrClosed, "discovery.ErrNoInstance": discovery.ErrNoInstance,
	"discovery.ErrNotCarried": discovery.ErrNotCarried, "discovery.ErrUnusable": discovery.ErrUnusable,
	"nodes.ErrClosed": nodes.ErrClosed, "nodes.ErrRemoved": nodes.ErrRemoved, "nodes.ErrStale": nodes.ErrStale,
	"fence.ErrStale": fence.ErrStale, "fence.ErrNoToken": fence.ErrNoToken, "fence.ErrOtherResource": fence.ErrOtherResource,
	"fence.ErrShared": fence.ErrShared, "fence.ErrCommit": fence.ErrCommit, "fence.ErrTxOpen": fence.ErrTxOpen,
}

// rows are the table rows of troubleshooting.md and log.md by their headings, each as its cells.
func rows(t *testing.T) map[string][][]string {
	t.Helper()
	all := map[string][][]string{}
	heading := ""
	for line := range strings.Lines(read(t, "troubleshooting.md") + read(t, "log.md")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			heading = strings.TrimLeft(line, "# ")
		}
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") {
			cells := strings.Split(strings.Trim(line, "|"), " | ")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all[heading] = append(all[heading], cells)
		}
	}
	return all
}

const (
	byName   = "Errors by their names"
	warnings = "Warnings in the log"
)

// Every error that a program can compare with has a row, which has its text.
func TestTroubleshootingNames(t *testing.T) {
	t.Parallel()
	explained := map[string]bool{}
	for _, row := range rows(t)[byName][1:] {
		name, text := strings.Trim(row[0], "`"), strings.Trim(row[1], "`")
		explained[name] = true
		switch err := sentinels[name]; {
		case err == nil:
			t.Errorf("%s has a row and is no error of this library", name)
		case err.Error() != text:
			t.Errorf("%s says %q, and its row %q", name, err, text)
		}
		if len(row) != 4 || row[2] == "" || row[3] == "" {
			t.Errorf("%s has no cause or nothing to do", name)
		}
	}
	packages := imported(t)
	found := 0
	for qualifier, path := range qualifiers {
		if !strings.HasPrefix(path, module) {
			continue
		}
		pkg, err := packages.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			if _, variable := pkg.Scope().Lookup(name).(*types.Var); !variable || !strings.HasPrefix(name, "Err") {
				continue
			}
			found++
			if name = qualifier + "." + name; !explained[name] {
				t.Errorf("%s has no row in troubleshooting.md", name)
			}
		}
	}
	if found != len(sentinels) {
		t.Errorf("the packages have %d errors, and this test has %d", found, len(sentinels))
	}
}

// said are the texts that tests expect, and those of the errors by name.
func said(t *testing.T) string {
	t.Helper()
	all := testSource(t)
	for _, m := range slices.Concat(firstHour, laterOn) {
		all += m.want + "\n" // without the escapes of the source
	}
	for _, err := range sentinels {
		all += err.Error() + "\n"
	}
	return all
}

// What the pages quote is what the code says: errors as a test has seen them, and
// lines of the log as the code writes them.
func TestTroubleshootingTexts(t *testing.T) {
	t.Parallel()
	errs := said(t)
	code := sourceOf(t, root)
	quoted := 0
	for heading, table := range rows(t) {
		if heading == byName {
			continue
		}
		source := errs
		if heading == warnings {
			source = code
		}
		for _, row := range table[1:] {
			for _, quote := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[0], -1) {
				for part := range strings.SplitSeq(quote[1], "...") {
					quoted++
					if part = strings.TrimSpace(part); !strings.Contains(source, part) {
						t.Errorf("%s: the pages quote %q, which no test expects and no code logs", heading, part)
					}
				}
			}
		}
	}
	if quoted == 0 {
		t.Error("the pages quote nothing")
	}
	t.Logf("%d quotes", quoted)
}

// Each warning that the code logs has a row.
func TestTroubleshootingWarnings(t *testing.T) {
	t.Parallel()
	var quotes []string
	for _, row := range rows(t)[warnings][1:] {
		quote, _, _ := strings.Cut(strings.Trim(row[0], "`"), "...")
		quotes = append(quotes, strings.TrimSpace(quote))
	}
	var code string
	for _, dir := range []string{"client", "recipes", "retry", "internal/wire"} {
		code += sourceOf(t, filepath.Join(root, dir))
	}
	lines := regexp.MustCompile(`(?:\bLevel(?:Warn|Error),|\.(?:Warn|Error)\()\s*"zookeeper: ([^"]+)"`).FindAllStringSubmatch(code, -1)
	for _, line := range lines {
		if !slices.ContainsFunc(quotes, func(quote string) bool { return strings.HasPrefix(line[1], quote) }) {
			t.Errorf("log.md has no row for the warning %q", line[1])
		}
	}
	if len(lines) < len(quotes)-1 { // the level of "no connection" is a variable
		t.Errorf("%d warnings found in the code, and %d rows", len(lines), len(quotes))
	}
}
