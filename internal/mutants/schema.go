package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of a file.
type mutant struct {
	number int
	line   int
	// name says in which function the change is, and what it is. It stays the same when
	// lines move. No two mutants of a file have the same.
	name string
}

// schema writes mutants into files of one package. Mutant n is chosen at run time by the
// variable mutant of that package, so one build has all of them.
type schema struct {
	mutants []mutant
}

// chooser is what a package of mutants is built with.
const chooser = `package %s

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("MUTANT"))
`

// file is one file while its mutants are written.
type file struct {
	*schema
	src   []byte
	set   *token.FileSet
	name  string
	in    string         // the function
	names map[string]int // of its mutants
	apply []func()
}

// write returns src with all its mutants, and the name of its package.
func (s *schema) write(path string, src []byte) (mutated []byte, pkg string, err error) {
	f := &file{schema: s, src: src, set: token.NewFileSet(), name: filepath.Base(path), names: map[string]int{}}
	parsed, err := parser.ParseFile(f.set, path, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.in = fn.Name.Name
			ast.Inspect(fn.Body, f.visit)
		}
	}
	for _, apply := range slices.Backward(f.apply) { // the outermost last, as it holds the others
		apply()
	}
	// Positions of the old file would put lines elsewhere.
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), parsed); err != nil {
		return nil, "", err
	}
	return b.Bytes(), parsed.Name.Name, nil
}

func (f *file) text(x ast.Node) string {
	return strings.Join(strings.Fields(string(f.src[f.set.Position(x.Pos()).Offset:f.set.Position(x.End()).Offset])), " ")
}

// number makes a mutant.
func (f *file) number(at ast.Node, what string) *ast.BasicLit {
	name := fmt.Sprintf("%s: %s: %s", f.name, f.in, what)
	if f.names[name]++; f.names[name] > 1 {
		name += fmt.Sprintf(" (%d)", f.names[name])
	}
	f.mutants = append(f.mutants, mutant{len(f.mutants) + 1, f.set.Position(at.Pos()).Line, name})
	return &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(len(f.mutants))}
}

func chosen(op token.Token, n *ast.BasicLit) ast.Expr {
	return &ast.BinaryExpr{X: ast.NewIdent("mutant"), Op: op, Y: n}
}

// or is x, and true if the mutant is chosen.
func or(x ast.Expr, n *ast.BasicLit) ast.Expr {
	return &ast.ParenExpr{X: &ast.BinaryExpr{X: x, Op: token.LOR, Y: chosen(token.EQL, n)}}
}

// and is x, and false if the mutant is chosen.
func and(x ast.Expr, n *ast.BasicLit) ast.Expr {
	return &ast.ParenExpr{X: &ast.BinaryExpr{X: x, Op: token.LAND, Y: chosen(token.NEQ, n)}}
}

func (f *file) visit(x ast.Node) bool {
	switch x := x.(type) {
	case *ast.GenDecl:
		return false
	case *ast.BinaryExpr:
		f.operands(x)
	case *ast.IfStmt:
		f.condition(&x.Cond)
	case *ast.ForStmt:
		if x.Cond != nil { // one that is always true does not end, which tells nothing
			f.never(&x.Cond)
		}
	case *ast.SwitchStmt:
		f.cases(x)
	case *ast.CaseClause:
		f.statements(x.Body)
	case *ast.BlockStmt:
		f.statements(x.List)
	case *ast.ReturnStmt:
		f.results(x)
	}
	return true
}

// operands drops each operand of && and ||.
func (f *file) operands(x *ast.BinaryExpr) {
	if x.Op != token.LAND && x.Op != token.LOR {
		return
	}
	for _, at := range []*ast.Expr{&x.X, &x.Y} {
		if b, ok := (*at).(*ast.BinaryExpr); ok && b.Op == x.Op {
			continue // its operands are dropped
		}
		n := f.number(*at, "drop "+f.text(*at)+" from: "+f.text(x))
		op := x.Op
		f.apply = append(f.apply, func() {
			if op == token.LAND {
				*at = or(*at, n)
			} else {
				*at = and(*at, n)
			}
		})
	}
}

// condition makes a condition always true, and never.
func (f *file) condition(at *ast.Expr) {
	n := f.number(*at, "always: "+f.text(*at))
	f.apply = append(f.apply, func() { *at = or(*at, n) })
	f.never(at)
}

func (f *file) never(at *ast.Expr) {
	n := f.number(*at, "never: "+f.text(*at))
	f.apply = append(f.apply, func() { *at = and(*at, n) })
}

// cases takes away each case of a switch over a value, and the conditions of others. A case
// without statements tells nothing.
func (f *file) cases(x *ast.SwitchStmt) {
	tag := x.Tag
	switch tag.(type) {
	case nil, *ast.Ident, *ast.SelectorExpr:
	default: // to ask again may tell something else
		return
	}
	for _, c := range x.Body.List {
		c, ok := c.(*ast.CaseClause)
		if !ok {
			continue
		}
		for i := range c.List {
			switch {
			case tag == nil:
				f.condition(&c.List[i])
			case len(c.Body) > 0:
				f.equal(tag, &c.List[i], f.number(c.List[i], "no case "+f.text(c.List[i])+" of "+f.text(tag)))
			default:
				f.equal(tag, &c.List[i], nil)
			}
		}
	}
	x.Tag = nil
}

// equal is the condition of a case of a switch over tag, and false if the mutant is chosen.
func (f *file) equal(tag ast.Expr, at *ast.Expr, n *ast.BasicLit) {
	f.apply = append(f.apply, func() {
		*at = &ast.BinaryExpr{X: tag, Op: token.EQL, Y: *at}
		if n != nil {
			*at = and(*at, n)
		}
	})
}

// statements removes each statement that declares nothing.
func (f *file) statements(list []ast.Stmt) {
	for i, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if strings.HasSuffix(f.text(s), "Lock()") {
				continue
			}
		case *ast.IncDecStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		n := f.number(s, "remove: "+f.text(s))
		f.apply = append(f.apply, func() {
			list[i] = &ast.IfStmt{Cond: chosen(token.NEQ, n), Body: &ast.BlockStmt{List: []ast.Stmt{list[i]}}}
		})
	}
}

// results turns true and false round.
func (f *file) results(x *ast.ReturnStmt) {
	for i, r := range x.Results {
		text := f.text(r)
		if text != "true" && text != "false" {
			continue
		}
		n := f.number(r, "return "+text+" -> the other")
		op := token.NEQ
		if text == "false" {
			op = token.EQL
		}
		f.apply = append(f.apply, func() { x.Results[i] = chosen(op, n) })
	}
}
