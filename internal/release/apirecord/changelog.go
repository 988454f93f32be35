package main

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// bullets are the entries of the section Unreleased of a changelog, each on one line.
func bullets(changelog string) []string {
	_, section, _ := strings.Cut(changelog, "\n## [Unreleased]\n")
	section, _, _ = strings.Cut(section, "\n## [")
	var found []string
	inside := false
	for line := range strings.Lines(section) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "- "):
			found = append(found, strings.TrimSpace(line[2:]))
			inside = true
		case inside && text != "" && strings.HasPrefix(line, "  "):
			found[len(found)-1] += " " + text
		default:
			inside = false
		}
	}
	return found
}

// mark stands for a bullet in the list of those that were there when the record was kept.
func mark(bullet string) string {
	sum := sha256.Sum256([]byte(bullet))
	return hex.EncodeToString(sum[:6])
}

// change is one exported name whose lines differ.
type change struct {
	pkg, id  string // the path without that of the library, the name with its type; id is empty for a package
	breaking bool   // it has gone or is another one
}

// changes compares two records. Members of a type that is new or has gone are not listed, nor are
// the names of such a package.
func changes(old, now map[string][]string) []change {
	var found []change
	for _, pkg := range sorted(old, now) {
		before, after := ids(old[pkg]), ids(now[pkg])
		if len(before) == 0 || len(after) == 0 {
			found = append(found, change{pkg, "", len(after) == 0})
			continue
		}
		for _, id := range sorted(before, after) {
			owner, _, member := strings.Cut(id, ".")
			gone, is := before[id]
			come, stays := after[id]
			if gone == come || member && (before[owner] == "" || after[owner] == "") {
				continue
			}
			found = append(found, change{pkg, id, is || !stays})
		}
	}
	return found
}

var line = regexp.MustCompile(`^\w+ \*?([\w.]+)`)

// ids are the lines of a record by the names that they are about.
func ids(lines []string) map[string]string {
	found := map[string]string{}
	for _, l := range lines {
		if m := line.FindStringSubmatch(l); m != nil {
			found[m[1]] += l + "\n"
		}
	}
	return found
}

// sorted are the keys of two maps.
func sorted[V any](a, b map[string]V) []string {
	return slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, m := range []map[string]V{a, b} {
			for key := range maps.Keys(m) {
				if !yield(key) {
					return
				}
			}
		}
	}))
}

var code = regexp.MustCompile("`[^`]+`")

// unsaid are the changes that no new bullet names. A bullet names what stands in it between
// backquotes: the package, or the name. Of a method or field its type must stand in the bullet, too.
// One about what has gone or is another says **Breaking**.
func unsaid(all []change, bullets []string) []change {
	var missing []change
	for _, c := range all {
		name, of := path.Base(c.pkg), ""
		if c.id != "" {
			name = c.id
			if owner, member, ok := strings.Cut(c.id, "."); ok {
				name, of = member, owner
			}
		}
		if !slices.ContainsFunc(bullets, func(b string) bool {
			return (!c.breaking || strings.Contains(b, "**Breaking**")) && has(strings.Join(code.FindAllString(b, -1), " "), name) && has(b, of)
		}) {
			missing = append(missing, c)
		}
	}
	return missing
}

// has reports whether a word is in a text.
func has(text, word string) bool {
	return word == "" || regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).MatchString(text)
}
