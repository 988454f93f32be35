package code

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Ignore begins the comment that keeps a line, or the line below it, from being reported.
// A reason has to follow.
const Ignore = "//docentvet:ignore "

// Heed returns the pass with a Report that heeds the comments which say that a line is
// meant as it is, and reports nothing twice.
func Heed(pass *analysis.Pass) *analysis.Pass {
	type line struct {
		file string
		line int
	}
	meant := map[line]bool{}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if reason, ok := strings.CutPrefix(c.Text, Ignore); ok && strings.TrimSpace(reason) != "" {
					at := pass.Fset.Position(c.Pos())
					meant[line{at.Filename, at.Line}] = true
					meant[line{at.Filename, at.Line + 1}] = true
				}
			}
		}
	}
	type finding struct {
		pos     token.Pos
		message string
	}
	reported := map[finding]bool{} // several paths may lead to one finding
	heeding := *pass
	heeding.Report = func(d analysis.Diagnostic) {
		at, found := pass.Fset.Position(d.Pos), finding{d.Pos, d.Message}
		if !meant[line{at.Filename, at.Line}] && !reported[found] {
			reported[found] = true
			pass.Report(d)
		}
	}
	return &heeding
}

// IsTest reports whether pos is in a test file.
func IsTest(pass *analysis.Pass, pos token.Pos) bool {
	return strings.HasSuffix(pass.Fset.Position(pos).Filename, "_test.go")
}

// Line is the number of the line of pos.
func Line(pass *analysis.Pass, pos token.Pos) int { return pass.Fset.Position(pos).Line }

// Insert is the fix that puts text on lines of its own behind a statement, indented as
// that one.
func Insert(pass *analysis.Pass, behind ast.Node, text string) analysis.TextEdit {
	indent := strings.Repeat("\t", max(pass.Fset.Position(behind.Pos()).Column-1, 0))
	return analysis.TextEdit{Pos: behind.End(), End: behind.End(), NewText: []byte("\n" + indent + text)}
}
