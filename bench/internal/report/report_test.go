package report_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/docent-go/docent/bench/internal/measure"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/report"
	"github.com/docent-go/docent/bench/internal/run"
)

func rounds(rates ...float64) []measure.Sample {
	var all []measure.Sample
	for _, r := range rates {
		all = append(all, measure.Sample{
			Rate: r, Cycle: []float64{1e6 / r, 2e6 / r, 3e6 / r}, HandOver: []float64{1e5 / r, 2e5 / r, 3e5 / r},
			Requests: 3, Events: 1, ServerCPU: 200, ClientCPU: 1e5 / r,
		})
	}
	return all
}

// beside adds a lone contender to rounds.
func beside(all []measure.Sample, rates ...float64) []measure.Sample {
	for i, rate := range rates {
		all[i].Lone, all[i].HandOver = rate, nil
		if rate > 0 {
			all[i].LoneCycle = []float64{1e6 / rate, 2e6 / rate, 3e6 / rate}
		}
	}
	return all
}

func results() *run.Results {
	return &run.Results{
		Rounds: 3, Window: "1s", Versions: []string{"ZooKeeper 3.8.0"},
		Machine: run.Machine{Processors: 2, Model: "a model", Others: 0.2},
		Cells: []run.Cell{
			{Setting: "one", Workload: "lock8", Peer: "docent", Rounds: rounds(1000, 3000, 2000)},
			{Setting: "one", Workload: "lock8", Peer: "rawho", Rounds: rounds(4000, 5000, 3900)},
			{Setting: "one", Workload: "lock8", Peer: "zklock", Rounds: rounds(1000, 1000, 1000)},
			{Setting: "one", Workload: "lock8", Peer: "curator", Failed: "the | rain `falls`\n\ton it"},
			{Setting: "one", Workload: "lock64", Peer: "docent", Rounds: rounds(100)},
			{Setting: "one", Workload: "lock64", Peer: "rawho", Rounds: rounds(200)},
			{Setting: "one", Workload: "crowd400", Peer: "docent", Rounds: beside(rounds(1280, 1280), 20, 20)},
			{Setting: "one", Workload: "crowd400", Peer: "rawho", Rounds: beside(rounds(2000, 2000, 1000), 2, 10, 5)},
			{Setting: "one", Workload: "crowd400", Peer: "curator", Rounds: beside(rounds(1000), 0)},
			{Setting: "one", Workload: "rw", Peer: "docent", Rounds: []measure.Sample{{Rate: 7}}},
			{Setting: "one", Workload: "rw", Peer: "raw", Rounds: rounds(14)},
		},
	}
}

// cells are the cells of a peer's line in the table below a heading.
func cells(t *testing.T, text, heading, peer string) []string {
	t.Helper()
	_, text, ok := strings.Cut(text, heading)
	if !ok {
		t.Fatalf("no %q", heading)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| "+peer+" ") {
			continue
		}
		var all []string
		for cell := range strings.SplitSeq(strings.Trim(line, "| \n"), "|") {
			all = append(all, strings.TrimSpace(cell))
		}
		return all
	}
	t.Fatalf("no line of %s below %q", peer, heading)
	return nil
}

func TestTable(t *testing.T) {
	t.Parallel()
	text := report.Text(results())
	for _, c := range []struct{ heading, peer, want string }{
		{"one lock, 8", "docent", "docent 2000 1000-3000 0.50 2.00 - 500 1000 1500 50.0 100 150 2.00 3.00 1.00 200 50.0 2.00"},
		{"one lock, 8", "rawho", "rawho (floor) 4000 3900-5000 1.00 4.00 - 250 500 750 25.0 50.0 75.0 1.00 3.00 1.00 200 25.0 1.00"},
		{"one lock, 8", "zklock", "zklock 1000 1000-1000 0.25 1.00 - 1000 2000 3000 100 200 300 4.00 3.00 1.00 200 100 4.00"},
		{"one lock, 8", "curator", "curator FAILED - - - - - - - - - - - - - - - - -"},
		{"one lock, 64", "zklock", "zklock - - - - - - - - - - - - - - - - -"},
		{"beside one", "docent", "docent 1280 1280-1280 0.64 1.28 20.0 4.00 - 64.0 50000 3.00 1.00 200 78.1 1.56"},
		{"beside one", "rawho", "rawho (floor) 2000 1000-2000 1.00 2.00 5.00 1.00 - 400 200000 3.00 1.00 200 50.0 1.00"},
		{"beside one", "curator", "curator 1000 1000-1000 0.50 1.00 0 0.00 - - - 3.00 1.00 200 100 2.00"},
		{"beside one", "zklock", "zklock - - - - - - - - - - - - - -"},
		{"read/write", "docent", "docent 7.00 7.00-7.00 0.50 - - - - - - - - - 0.00 0.00 0 0 0.00"},
	} {
		if got := strings.Join(cells(t, text, c.heading, c.peer), " "); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.heading, c.peer, got, c.want)
		}
	}
	for _, want := range []string{
		"**curator failed:** `the | rain 'falls' on it`",
		"**The machine was loaded:** other programs had 20 %",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %s", want)
		}
	}
}

// TestAligned: every line of a table is as wide as its head.
func TestAligned(t *testing.T) {
	t.Parallel()
	wide := 0
	for line := range strings.Lines(report.Text(results())) {
		if !strings.HasPrefix(line, "|") {
			wide = 0
			continue
		}
		if wide == 0 {
			wide = len(line)
		}
		if len(line) != wide {
			t.Errorf("%d bytes instead of %d: %s", len(line), wide, line)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	if err := report.Write(results(), dir); err != nil {
		t.Fatal(err)
	}
	got, err := report.Read(filepath.Join(dir, "results.json"))
	if err != nil || !reflect.DeepEqual(got, results()) {
		t.Errorf("read %+v, %v", got, err)
	}
	for _, name := range []string{"tables.md", "one-rate.svg", "one-handover.svg", "one-cpu.svg", "one-others.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

// TestDocument: what is outside the marks stays, what is inside is replaced, also again.
func TestDocument(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	const before, after = "# Title\n\n<!-- bench:begin: made by bench, go run . -doc -->", "<!-- bench:end -->\n\nthe rest\n"
	if err := os.WriteFile(path, []byte(before+"\nold\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	var last string
	for range 2 {
		if err := report.Document(results(), path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := string(text)
		if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || strings.Contains(got, "old") ||
			!strings.Contains(got, "| docent") || !strings.Contains(got, "(page/one-rate.svg)") {
			t.Errorf("the page:\n%s", got)
		}
		if last != "" && got != last {
			t.Error("the second time made another page")
		}
		last = got
	}
	if err := os.WriteFile(path, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report.Document(results(), path); err == nil {
		t.Error("a page without marks was accepted")
	}
}

// TestFloors: every workload has its floor among the peers.
func TestFloors(t *testing.T) {
	t.Parallel()
	for _, w := range plan.Workloads() {
		found := false
		for _, p := range plan.Peers() {
			found = found || p.Name == w.Floor() && p.Does(&w) && p.Floor
		}
		if !found {
			t.Errorf("%s has no floor", w.Name)
		}
	}
}
