package docs_test

import (
	"regexp"
	"strings"
)

var (
	inlineCode = regexp.MustCompile("`[^`]+`")
	links      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	item       = regexp.MustCompile(`^ *([-*]|\d+\.) `)
	// An abbreviation ends no sentence.
	sentenceEnd = regexp.MustCompile(`([.!?]["')*]*) +(["'(*]*[\p{Lu}\d]|CODE)`)
)

// prose returns the paragraphs and list items of a page, and its table rows where they
// are wanted. Each is on one line, without code and links.
func prose(page string, tables bool) []string {
	var blocks []string
	var block []string
	end := func() {
		if len(block) > 0 {
			text := strings.Join(block, " ")
			text = links.ReplaceAllString(inlineCode.ReplaceAllString(text, "CODE"), "$1")
			blocks = append(blocks, text)
		}
		block = nil
	}
	fenced, listed := false, false
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			end()
			fenced = !fenced
		case fenced:
		case text == "":
			end()
		case strings.HasPrefix(line, "#"):
			end()
			listed = false
		case strings.HasPrefix(text, "|"):
			end()
			if tables {
				block = append(block, text)
				end()
			}
		case strings.HasPrefix(line, "    ") && !listed:
			end() // shown as code
		case item.MatchString(line):
			end()
			listed = true
			block = append(block, item.ReplaceAllString(text, ""))
		default:
			listed = listed && strings.HasPrefix(line, " ")
			block = append(block, text)
		}
	}
	end()
	return blocks
}

// sentences splits a block, as prose returns it.
func sentences(block string) []string {
	split := sentenceEnd.ReplaceAllString(block, "$1\n$2")
	return strings.Split(split, "\n")
}
