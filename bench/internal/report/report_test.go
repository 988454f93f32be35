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

const begin, end = "<!-- bench:begin: made by bench, go run . -doc -->", "<!-- bench:end -->"

// TestDocument: what is outside the marks stays, what is inside is replaced, also again. A page
// whose workloads were not measured stays as it is.
func TestDocument(t *testing.T) {
	t.Parallel()
	const before, after = "# Title\n\n" + begin, end + "\n\nthe rest\n"
	const old = before + "\nold\n" + after
	parts := map[string]string{
		"one-process": "### one: one lock, 8 contenders", "crowds": "beside one of another", "read-write-locks": "### one: one read/write lock",
	}
	dir := t.TempDir()
	names := append(report.Pages(), "plots")
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := map[string]string{}
	for range 2 {
		if err := report.Document(results(), dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, name+".md"))
			if err != nil {
				t.Fatal(err)
			}
			got, part := string(text), parts[name]
			if part == "" && got != old {
				t.Errorf("%s has changed:\n%s", name, got)
			}
			if part != "" && (!strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || strings.Contains(got, "old") ||
				!strings.Contains(got, "Measured ") || strings.Count(got, part) != 1) {
				t.Errorf("%s:\n%s", name, got)
			}
			if last[name] != "" && got != last[name] {
				t.Errorf("the second time made another %s", name)
			}
			last[name] = got
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "crowds.md"), []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := report.Document(results(), dir); err == nil {
		t.Error("a page without marks was accepted")
	}
}

// TestPlots: a run of all workloads replaces the tables of every page, and the plots.
func TestPlots(t *testing.T) {
	t.Parallel()
	whole := results()
	for _, w := range plan.Workloads() {
		whole.Cells = append(
			whole.Cells,
			run.Cell{Setting: "one", Workload: w.Name, Peer: "docent", Rounds: rounds(1000)},
			run.Cell{Setting: "one", Workload: w.Name, Peer: w.Floor(), Rounds: rounds(2000)},
		)
	}
	dir := t.TempDir()
	names := append(report.Pages(), "plots")
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(begin+"\nold\n"+end), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := report.Document(whole, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name+".md"))
		if err != nil || strings.Contains(string(text), "old") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		for _, plot := range []string{"one-rate.svg", "one-handover.svg", "one-cpu.svg", "one-others.svg"} {
			if _, err := os.Stat(filepath.Join(dir, plot)); err != nil || strings.Contains(string(text), "("+plot+")") != (name == "plots") {
				t.Errorf("%s, %s: %v", name, plot, err)
			}
		}
	}
}

// TestPages: bench/results has a page for the tables of each workload, and one for the plots.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, name := range append(report.Pages(), "plots") {
		text, err := os.ReadFile(filepath.Join("../../results", name+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, rest, ok := strings.Cut(string(text), begin); !ok || !strings.Contains(rest, end) {
			t.Errorf("%s.md has no marks", name)
		}
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
