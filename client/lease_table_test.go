package client_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
)

// The table by which a reader of docs/losing-a-lock.md chooses a timeout says
// what the default policy does.
func TestTableOfTimeouts(t *testing.T) {
	t.Parallel()
	wantTable(t, "losing-a-lock.md", "| T | heartbeat every |", func(timeout time.Duration) []time.Duration {
		life, margin, relay, beat, _ := client.Terms(client.LeasePolicy{}, timeout)
		proves := life - relay - beat
		return []time.Duration{timeout, beat, proves, margin, proves - margin}
	})
}

// So does the table in docs/internals/lease.md of what the longest period costs.
func TestTableOfPeriods(t *testing.T) {
	t.Parallel()
	wantTable(t, "internals/lease.md", "| T | longest period |", func(timeout time.Duration) []time.Duration {
		_, _, _, _, usual := client.Terms(client.LeasePolicy{}, timeout)
		life, margin, relay, beat, survived := client.Terms(client.LeasePolicy{HeartbeatPeriod: time.Hour}, timeout)
		proves := life - relay - beat
		return []time.Duration{timeout, beat, proves, proves - margin, survived, usual}
	})
}

// The table by which a reader of docs/scaling.md counts writes is made by the formula.
func TestTableOfWrites(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| holding sessions |")
	table, _, _ = strings.Cut(table, "\n\n")
	periods := []time.Duration{}
	for _, timeout := range []time.Duration{6 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, 40 * time.Second} {
		periods = append(periods, client.LeasePolicy{}.Period(timeout))
	}
	periods = append(periods, client.LeasePolicy{HeartbeatPeriod: time.Hour}.Period(30*time.Second))
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Fields(strings.ReplaceAll(line, "|", " "))
		n, err := strconv.ParseFloat(cells[0], 64)
		if err != nil {
			continue // the heading
		}
		rows++
		for i, period := range periods {
			if want := fmt.Sprintf("%.0f", n/period.Seconds()); cells[1+i] != want {
				t.Errorf("%v sessions with a heartbeat every %v: the table says %q, want %s", n, period, cells[1+i], want)
			}
		}
	}
	if rows != 4 {
		t.Errorf("found %d rows", rows)
	}
}

// wantTable compares a table of a page in docs with what its rows should be.
func wantTable(t *testing.T, name, heading string, row func(timeout time.Duration) []time.Duration) {
	t.Helper()
	page, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), heading)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		timeout, err := seconds(cells[0])
		if err != nil {
			continue // the heading
		}
		rows++
		for i, want := range row(timeout) {
			got, err := seconds(cells[i])
			if err != nil || fmt.Sprintf("%.1f", got.Seconds()) != fmt.Sprintf("%.1f", want.Seconds()) {
				t.Errorf("T=%v: the table says %q, the policy %v", timeout, cells[i], want)
			}
		}
	}
	if rows != 6 {
		t.Errorf("found %d rows", rows)
	}
}

// seconds reads a cell such as "0.67 s".
func seconds(cell string) (time.Duration, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(cell), " s"), 64)
	return time.Duration(n * float64(time.Second)), err
}
