package zktest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// The package converts its constants to the engine's constants, and to those of the
// table, by their numbers. So both lists have the same names, with the same values, in the same order.
func TestConstantsAgreeWithTheEngine(t *testing.T) {
	t.Parallel()
	const engine, table = "../internal/zkserver/", "../internal/zoodefs/zoodefs.go"
	for typ, files := range map[string][2]string{
		"Op":      {"protocol.go", table},
		"Code":    {"protocol.go", table},
		"Version": {"version.go", engine + "config.go"},
		"Quirk":   {"quirk.go", engine + "config.go"},
	} {
		ours, theirs := constants(t, files[0], typ), constants(t, files[1], typ)
		if files[1] == table { // ours are defined as theirs, and no client sends an OpError
			theirs = slices.DeleteFunc(theirs, func(c string) bool { return c == "OpError=-1" })
			for i, c := range theirs {
				name, _, _ := strings.Cut(c, "=")
				theirs[i] = name + "=" + typ + "(zoodefs." + name + ")"
			}
		}
		if len(ours) < 4 || !slices.Equal(ours, theirs) {
			t.Errorf("%s: zktest has\n%v, the engine\n%v", typ, ours, theirs)
		}
	}
}

// constants returns the exported constants of a type in a file, as "name=value" or,
// where the value is repeated, "name".
func constants(t *testing.T, file, typ string) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		ofType := false
		for _, spec := range group.Specs {
			c, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			switch {
			case c.Type != nil:
				ofType = types.ExprString(c.Type) == typ
			case len(c.Values) > 0:
				ofType = false
			}
			if !ofType || !c.Names[0].IsExported() {
				continue
			}
			text := c.Names[0].Name
			for _, v := range c.Values {
				text += fmt.Sprint("=", types.ExprString(v))
			}
			out = append(out, text)
		}
	}
	return out
}
