package main

// target is a machine, and the tests that have to notice its mutants.
type target struct {
	name   string
	files  []string // of one package
	judges []judge
}

// judge is the tests of a package whose names match a pattern.
type judge struct{ dir, run string }

// targets are the machines that decide who holds, who is next and what is published.
var targets = []target{
	{
		name:  "chain",
		files: []string{"recipes/internal/seqqueue/chain.go", "recipes/internal/seqqueue/next.go"},
		judges: []judge{
			{"recipes/internal/seqqueue", "Chain|Window|Queue|Member|Room"},
			{"recipes/internal/seqqueue", "Explore$"},
			{"recipes", "NoWriter|NoTwo|HandOver|Downgrade|Crowd|EveryShortProgram|Told|Wait"},
		},
	},
	{
		name:   "turns",
		files:  []string{"recipes/shared/turns.go"},
		judges: []judge{{"recipes/shared", "Turns|Atomic|Blocks"}},
	},
	{
		name:   "candidacy",
		files:  []string{"recipes/leader_candidacy.go"},
		judges: []judge{{"recipes", "ExploreCandidac|Prefer|Participant|Campaign|HandOver"}},
	},
}
