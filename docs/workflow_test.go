package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// workflow is the file of the jobs for a public forge.
const workflow = "../.github/workflows/ci.yml"

// made are the targets of make that a text calls, with their variables, sorted.
func made(text string, call *regexp.Regexp) []string {
	var found []string
	for _, m := range call.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	slices.Sort(found)
	return found
}

var (
	calledByRun      = regexp.MustCompile(`(?m)^(?:DOCENT_\w+=\w+ )?(make [a-z0-9-]+(?: [A-Z_]+=\w+)*)(?: \| .*)?$`)
	calledByWorkflow = regexp.MustCompile(`(?m)^ +(?:- |- run: |run: )(make [a-z0-9-]+(?: [A-Z_]+=\w+)*)$`)
	calledByCheck    = regexp.MustCompile(`(?m)^\t\$\(MAKE\) ([a-z0-9-]+)$`)
	target           = regexp.MustCompile(`make ([a-z0-9-]+)`)
)

// The jobs of the workflow run what .ci/run runs, with the same variables, and make check the same targets.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	run := read(t, "../.ci/run")
	want, got := made(run, calledByRun), made(read(t, workflow), calledByWorkflow)
	if len(want) < 10 || !slices.Equal(want, got) {
		t.Errorf("%s calls\n%q\nand .ci/run\n%q", workflow, got, want)
	}
	var targets []string
	for _, call := range want {
		targets = append(targets, target.FindStringSubmatch(call)[1])
	}
	slices.Sort(targets)
	_, recipe, _ := strings.Cut(read(t, "../Makefile"), "\ncheck:")
	if check := made(recipe, calledByCheck); !slices.Equal(targets, check) {
		t.Errorf("make check calls\n%q\nand .ci/run\n%q", check, targets)
	}
	for _, step := range regexp.MustCompile(`(?m)^step (make [a-z0-9-]+)$`).FindAllStringSubmatch(run, -1) {
		if !slices.ContainsFunc(want, func(call string) bool { return target.FindString(call) == step[1] }) {
			t.Errorf(".ci/run has a step %q, and TestWorkflow does not see it call that", step[1])
		}
	}
}

// A call that is missing in one of the texts is noticed, and so is another variable.
func TestWorkflowDiffers(t *testing.T) {
	t.Parallel()
	run := "step make lint\nmake lint\nmake fuzz-short FUZZTIME=3x\nDOCENT_X=20 make integration | while read -r line; do\n"
	for text, same := range map[string]bool{
		"          - make lint\n          - make fuzz-short FUZZTIME=3x\n      - run: make integration\n": true,
		"          - make lint\n          - make fuzz-short FUZZTIME=4x\n      - run: make integration\n": false,
		"          - make lint\n      - run: make integration\n":                                          false,
		"# - make lint\n          - make fuzz-short FUZZTIME=3x\n      - run: make integration\n":         false,
	} {
		if want, got := made(run, calledByRun), made(text, calledByWorkflow); slices.Equal(want, got) != same {
			t.Errorf("%q and %q: the same is %v, want %v", want, got, !same, same)
		}
	}
}
