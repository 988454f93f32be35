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
	page, err := os.ReadFile("../docs/losing-a-lock.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| T | heartbeat every |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		timeout, err := seconds(cells[0])
		if err != nil {
			continue // the heading
		}
		rows++
		life, margin, relay, beat, _ := client.Terms(client.LeasePolicy{}, timeout)
		proves := life - relay - beat
		for i, want := range []time.Duration{timeout, beat, proves, margin, proves - margin} {
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
