package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxRecord is how many words a record of a decision may have.
const maxRecord = 250

var (
	recordName   = regexp.MustCompile(`^\d{4}-[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	recordStatus = regexp.MustCompile(`(?m)^Status: accepted(, with \d{4}(?:, \d{4})*)?$`)
	recordNumber = regexp.MustCompile(`\d{4}`)
	recordPart   = regexp.MustCompile(`(?m)^## (.*)$`)
	recordParts  = []string{"Context", "Decision", "Consequences"}
)

// recordTitle returns the title of a record and what else is in it.
func recordTitle(number, text string) (title, rest string) {
	first, rest, _ := strings.Cut(text, "\n")
	title, numbered := strings.CutPrefix(first, "# "+number+". ")
	if !numbered {
		return "", rest
	}
	return title, rest
}

// recordsIn returns the numbers of the records that became part of this one.
func recordsIn(text string) []string {
	status := recordStatus.FindStringSubmatch(text)
	if status == nil {
		return nil
	}
	return recordNumber.FindAllString(status[1], -1)
}

// wrongRecord returns what is wrong with the record of that name.
func wrongRecord(name, text string) []string {
	if !recordName.MatchString(name) {
		return []string{"the name is not NNNN-title.md"}
	}
	var wrong []string
	title, rest := recordTitle(name[:4], text)
	if title == "" || strings.HasSuffix(title, ".") {
		wrong = append(wrong, "the first line is not the number and a title")
	}
	head, _, _ := strings.Cut(rest, "\n## ")
	if statuses := recordStatus.FindAllString(head, -1); len(statuses) != 1 {
		wrong = append(wrong, "it has no Status, or two")
	} else if with := recordsIn(text); !slices.IsSorted(append([]string{name[:4]}, with...)) {
		wrong = append(wrong, fmt.Sprintf("the records %v are not younger than it, in order", with))
	}
	last := -1
	for _, at := range recordPart.FindAllStringSubmatchIndex(rest, -1) {
		part := rest[at[2]:at[3]]
		place := slices.Index(recordParts, part)
		if place <= last {
			wrong = append(wrong, part+" is no part of a record, or stands at the wrong place")
		}
		last = place
		if body, _, _ := strings.Cut(rest[at[1]:], "\n## "); strings.TrimSpace(body) == "" {
			wrong = append(wrong, part+" is empty")
		}
	}
	if !strings.Contains(rest, "\n## Decision\n") {
		wrong = append(wrong, "it has no Decision")
	}
	words := 0
	for word := range strings.FieldsSeq(text) {
		if strings.Trim(word, "#") != "" {
			words++
		}
	}
	if words > maxRecord {
		wrong = append(wrong, fmt.Sprintf("it has %d words, more than %d", words, maxRecord))
	}
	return wrong
}

// Records have the form that CONTRIBUTING.md names, and a line each on their index. A number
// is that of one record or of one that became part of it, without gaps and without doubles.
func TestDecisions(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("decisions")
	if err != nil || len(entries) < 2 {
		t.Fatalf("entries %v, error %v", entries, err)
	}
	var lines, numbers []string
	for _, entry := range entries {
		name := entry.Name()
		if name == "README.md" {
			continue
		}
		text := read(t, filepath.Join("decisions", name))
		for _, wrong := range wrongRecord(name, text) {
			t.Errorf("docs/decisions/%s: %s", name, wrong)
		}
		here := append([]string{name[:4]}, recordsIn(text)...)
		numbers = append(numbers, here...)
		title, _ := recordTitle(name[:4], text)
		lines = append(lines, fmt.Sprintf("- %s [%s](%s)", strings.Join(here, ", "), title, name))
	}
	slices.Sort(numbers)
	for i, number := range numbers {
		if want := fmt.Sprintf("%04d", i+1); number != want {
			t.Errorf("docs/decisions: %s stands where %s should, in a name or a Status", number, want)
			break
		}
	}
	var indexed []string
	for line := range strings.Lines(read(t, "decisions/README.md")) {
		if strings.HasPrefix(line, "- ") {
			indexed = append(indexed, strings.TrimSpace(line))
		}
	}
	slices.Sort(indexed)
	for _, line := range lines {
		if !slices.Contains(indexed, line) {
			t.Errorf("docs/decisions/README.md does not have the line %q", line)
		}
	}
	if len(indexed) != len(lines) {
		t.Errorf("docs/decisions/README.md has %d lines for %d records", len(indexed), len(lines))
	}
}

// A record without its form is noticed.
func TestWrongDecisions(t *testing.T) {
	t.Parallel()
	good := "# 0007. Locks are fair\n\nStatus: accepted\n\n## Context\n\nWhy.\n\n## Decision\n\nWhat.\n\n## Consequences\n\n- One.\n"
	if wrong := wrongRecord("0007-fair.md", good); wrong != nil {
		t.Errorf("a record in its form: %q", wrong)
	}
	for _, change := range [][2]string{
		{"# 0007. Locks are fair", "# Locks are fair"},
		{"# 0007.", "# 0008."},
		{"fair\n", "fair.\n"},
		{"Status: accepted\n\n", ""},
		{"accepted", "proposed"},
		{"accepted", "replaced by 0008"},
		{"accepted", "accepted, with 8"},
		{"accepted", "accepted, with 0006"},
		{"accepted", "accepted, with 0009, 0008"},
		{"accepted", "accepted\nStatus: accepted"},
		{"## Decision", "## Context"},
		{"## Context\n\nWhy.\n\n## Decision\n\nWhat.", "## Decision\n\nWhat.\n\n## Context\n\nWhy."},
		{"## Decision\n\nWhat.\n\n", ""},
		{"What.", ""},
		{"## Consequences", "## Costs"},
		{"Why.", strings.Repeat("why ", maxRecord)},
	} {
		if text := strings.Replace(good, change[0], change[1], 1); wrongRecord("0007-fair.md", text) == nil {
			t.Errorf("%q in the place of %q is not noticed", change[1], change[0])
		}
	}
	for _, name := range []string{"7-fair.md", "0007.md", "0007-Fair.md", "0007-fair-.md", "fair.md"} {
		if wrongRecord(name, good) == nil {
			t.Errorf("the name %s is not noticed", name)
		}
	}
}
