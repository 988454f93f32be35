package main

import "strings"

// target is a machine, and the tests that have to notice its mutants.
type target struct {
	name   string
	files  []string // of one package
	judges []judge
}

// judge is the tests of a package whose names match run, and do not match skip.
type judge struct {
	dir, run, skip string
	env            string // NAME=VALUE, or ""
}

// String names the tests.
func (j judge) String() string {
	text := j.dir + " " + j.run
	if j.skip != "" {
		text += " without " + j.skip
	}
	return text
}

// short is the short programs of some kinds.
func short(kinds ...string) string {
	for i, k := range kinds {
		kinds[i] = "TestEveryShortProgram/^" + k + "$"
	}
	return strings.Join(kinds, "|")
}

// targets are the machines that decide who holds, who is next and what is published. The
// cheapest judge of each is the first.
var targets = []target{
	{
		name:  "chain",
		files: []string{"recipes/internal/seqqueue/chain.go", "recipes/internal/seqqueue/next.go"},
		judges: []judge{
			{dir: "recipes/internal/seqqueue", run: "Chain|Next"},
			{dir: "recipes/internal/seqqueue", run: ".", skip: "Explore"},
			{dir: "recipes/internal/seqqueue", run: "TestExplore$/^[WR][WR]_"},
			{dir: "recipes", run: "NoWriter|NoTwo|HandOver|Downgrade|Crowd|Told|Wait"},
			{dir: "recipes", run: short("mutex", "mutex_of_two_clients", "read/write_lock", "read/write_lock_of_two_clients")},
			{dir: "recipes/internal/seqqueue", run: "TestExplore$"},
		},
	},
	{
		name:  "room",
		files: []string{"recipes/internal/seqqueue/window.go"},
		judges: []judge{
			{dir: "recipes/internal/seqqueue", run: "ExploreRoom$"},
			{dir: "recipes/internal/seqqueue", run: "Chain|Window"},
			{dir: "recipes", run: "Crowd"},
			{dir: "recipes", run: short("mutex_with_a_window")},
		},
	},
	{
		name:  "keeper",
		files: []string{"recipes/nodes/keeper.go", "recipes/nodes/answers.go"},
		judges: []judge{
			{dir: "recipes/nodes", run: "TestKeeper"},
			{dir: "recipes/nodes", run: "TestExploreKeeper$"},
		},
	},
	{
		name:  "round",
		files: []string{"recipes/barrier/round.go"},
		judges: []judge{
			{dir: "recipes/barrier", run: "TestRule"},
			{dir: "recipes/barrier", run: "TestExploreMachine$"},
		},
	},
	{
		name:  "turns",
		files: []string{"recipes/shared/turns.go"},
		judges: []judge{
			{dir: "recipes/shared", run: "TestTurns$", env: "DOCENT_TURNS_TROUBLES=2"},
			{dir: "recipes/shared", run: "Atomic|Blocks"},
		},
	},
	{
		name:  "book",
		files: []string{"recipes/internal/book/book.go"},
		judges: []judge{
			{dir: "recipes/internal/book", run: "TestBook"},
			{dir: "recipes/internal/book", run: "TestExploreBook$/faults:0"},
			{dir: "recipes/internal/book", run: "TestExploreBook$"},
			{dir: "recipes", run: "SemaphoreHandOver|SemaphoreTogether|SemaphoreQueue|SemaphoreNode|SemaphoreExpiry|SemaphoreLoss|WaitSays"},
		},
	},
	{
		name:  "gathering",
		files: []string{"recipes/internal/gathering/gathering.go"},
		judges: []judge{
			{dir: "recipes/internal/gathering", run: "ExploreGatherings"},
			{dir: "recipes", run: "MultiLock"},
		},
	},
	{
		name:  "choosing",
		files: []string{"recipes/discovery/internal/choosing/choosing.go"},
		judges: []judge{
			{dir: "recipes/discovery/internal/choosing", run: "."},
		},
	},
	{
		name:  "candidacy",
		files: []string{"recipes/internal/candidacy/candidacy.go"},
		judges: []judge{
			{dir: "recipes/internal/candidacy", run: ".", skip: "Explore"},
			{dir: "recipes/internal/candidacy", run: "ExploreCandidacies$"},
			{dir: "recipes", run: "Prefer|Participant|Campaign|HandOver"},
		},
	},
	{
		name:  "directory",
		files: []string{"recipes/discovery/directory.go"},
		judges: []judge{
			{dir: "recipes/discovery", run: "TestHeld"},
			{dir: "recipes/discovery", run: "TestExploreDirectory$"},
		},
	},
}
