// Package zkerrorcompare finds comparisons of errors that are never true.
package zkerrorcompare

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/ssa"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports == and switch with an error value of ZooKeeper or Docent.
var Analyzer = &analysis.Analyzer{
	Name: "zkerrorcompare",
	Doc: `find == and switch with errors of ZooKeeper and Docent

Docent's errors say what failed, and wrap the value that says why. So err ==
zk.ErrNoNode compiles and is never true; errors.Is(err, zk.ErrNoNode) is. It is
reported where the error surely comes from Docent: by variables, fields, closures
and functions, also of other packages. An error that a go-zookeeper Conn may have
returned, by an interface for example, is left alone. So is a line that has
//nolint:errorlint. The errors of a recipe, such as recipes.ErrBusy, nobody else
makes: == with them is reported unless the package itself returns them bare.`,
	Requires:  []*analysis.Analyzer{ctrlflow.Analyzer},
	FactTypes: []analysis.Fact{(*wraps)(nil), (*bare)(nil)},
	Run:       run,
}

// asTheyAre are the errors that some call of Docent returns without a wrapper.
var asTheyAre = map[string][]string{
	"client":            {"ErrClosed"},
	"recipes":           {"ErrReleased"},
	"recipes/barrier":   {"ErrLeft"},
	"recipes/cache":     {"ErrClosed"},
	"recipes/discovery": {"ErrClosed"},
	"recipes/nodes":     {"ErrClosed", "ErrRemoved"},
}

// bare is the fact that a package uses errors of Docent for more than to ask for them: it
// may return one as it is.
type bare struct{ Errors []string }

// AFact makes bare a fact.
func (*bare) AFact() {}

// String names the fact.
func (b *bare) String() string { return "bare " + strings.Join(b.Errors, ", ") }

func run(pass *analysis.Pass) (any, error) {
	if !slices.ContainsFunc(pass.Pkg.Imports(), code.IsLibrary) && len(pass.AllObjectFacts()) == 0 {
		return nil, nil //nolint:nilnil // an analyzer without a result
	}
	c := checker{Pass: code.Heed(pass), program: read(pass), meantLines: map[int]bool{}, bare: map[string]bool{}}
	c.facts()
	for _, file := range pass.Files {
		clear(c.meantLines)
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if strings.HasPrefix(comment.Text, "//nolint:") && strings.Contains(comment.Text, "errorlint") {
					c.meantLines[code.Line(pass, comment.Pos())] = true
				}
			}
		}
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					c.compare(file, n, stack)
				}
			case *ast.SwitchStmt:
				c.choose(file, n, stack)
			}
			return true
		})
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

type checker struct {
	*analysis.Pass
	*program
	meantLines map[int]bool    // of the file that is looked at
	bare       map[string]bool // errors that this package, or one that it imports, may return as they are
}

// facts exports what other packages have to know of this one, and reads what it knows of them.
func (c checker) facts() {
	for _, fact := range c.AllPackageFacts() {
		if b, ok := fact.Fact.(*bare); ok {
			for _, name := range b.Errors {
				c.bare[name] = true
			}
		}
	}
	if code.IsLibrary(c.Pkg) {
		return
	}
	for _, file := range c.Files {
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if v := c.sentinel(e); v != nil && ofRecipe(v) && !c.asks(e, stack) {
					c.bare[fullName(v)] = true
				}
			}
			_, selector := n.(*ast.SelectorExpr)
			return !selector || c.sentinel(n.(ast.Expr)) == nil //nolint:forcetypeassert,errcheck // as it was asked
		})
	}
	if len(c.bare) > 0 {
		c.ExportPackageFact(&bare{slices.Sorted(maps.Keys(c.bare))})
	}
	for _, f := range c.functions {
		o, ok := f.Object().(*types.Func)
		if !ok || !o.Exported() {
			continue
		}
		var found wraps
		for i := range f.Signature.Results().Len() {
			if isError(f.Signature.Results().At(i).Type()) {
				t := c.trace()
				if t.results(f, i); t.from == docent {
					found.Results = append(found.Results, i)
				}
			}
		}
		if len(found.Results) > 0 {
			c.ExportObjectFact(o, &found)
		}
	}
}

// asks reports whether a use of an error value compares it, or gives it to a function such
// as errors.Is or fmt.Errorf, which do not return it.
func (c checker) asks(e ast.Expr, stack []ast.Node) bool {
	switch p := stack[len(stack)-1].(type) {
	case *ast.BinaryExpr, *ast.CaseClause:
		return true
	case *ast.CallExpr:
		f := code.Callee(c.TypesInfo, p)
		return f != nil && ast.Unparen(p.Fun) != e && (strings.HasSuffix(f.Name(), "Is") || strings.HasPrefix(f.Name(), "Is") || code.IsFunc(f, "fmt", "Errorf"))
	}
	return false
}

// ofRecipe reports whether v is an error that only Docent makes. Those of package client are
// go-zookeeper's, in part.
func ofRecipe(v *types.Var) bool {
	return code.IsLibrary(v.Pkg()) && v.Pkg().Path() != code.Module+"client"
}

func fullName(v *types.Var) string { return v.Pkg().Path() + "." + v.Name() }

// misses reports whether an error that is compared at pos is certainly of Docent, which wraps
// the value.
func (c checker) misses(err, value ast.Expr, pos token.Pos) bool {
	v := c.sentinel(value)
	if v == nil || c.sentinel(err) != nil {
		return false
	}
	room, ours := strings.CutPrefix(v.Pkg().Path(), code.Module)
	if ours && slices.Contains(asTheyAre[room], v.Name()) {
		return false
	}
	compares := c.compares[pos]
	if len(compares) == 0 {
		return false // it is never reached
	}
	var from origin
	for _, is := range compares {
		for _, x := range []ssa.Value{is.X, is.Y} {
			if !isValue(x, v) {
				from |= c.origin(x)
			}
		}
	}
	return from == docent || ofRecipe(v) && !code.IsLibrary(c.Pkg) && !c.bare[fullName(v)]
}

// isValue reports whether x is the variable v of a package.
func isValue(x ssa.Value, v *types.Var) bool {
	if c, ok := x.(*ssa.ChangeInterface); ok {
		x = c.X
	}
	load, ok := x.(*ssa.UnOp)
	if !ok {
		return false
	}
	g, ok := load.X.(*ssa.Global)
	return ok && g.Object() == v
}

// declared is the function that a declaration declares.
func declared(pass *analysis.Pass, built *ssa.Program, decl ast.Decl) *ssa.Function {
	d, ok := decl.(*ast.FuncDecl)
	if !ok {
		return nil
	}
	f, ok := pass.TypesInfo.Defs[d.Name].(*types.Func)
	if !ok {
		return nil
	}
	return built.FuncValue(f)
}

// sentinel is the error value of go-zookeeper or Docent that e is, or nil.
func (c checker) sentinel(e ast.Expr) *types.Var {
	var name *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		name = e
	case *ast.SelectorExpr:
		name = e.Sel
	default:
		return nil
	}
	v, ok := c.TypesInfo.Uses[name].(*types.Var)
	if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() || !strings.HasPrefix(v.Name(), "Err") || !isError(v.Type()) ||
		!code.IsLibrary(v.Pkg()) && !isZooKeeper(v.Pkg()) {
		return nil
	}
	return v
}

// isZooKeeper reports whether pkg is package zk of go-zookeeper, by whatever owner.
func isZooKeeper(pkg *types.Package) bool {
	return pkg != nil && strings.HasSuffix(pkg.Path(), "/go-zookeeper/zk")
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

func (c checker) compare(file *ast.File, n *ast.BinaryExpr, stack []ast.Node) {
	err, target := n.X, n.Y
	if c.sentinel(err) != nil {
		err, target = target, err
	}
	if !c.misses(err, target, n.OpPos) || c.meant(err, stack) {
		return
	}
	not := ""
	if n.Op == token.NEQ {
		not = "!"
	}
	name, edits, ok := c.errors(file, n.Pos())
	d := analysis.Diagnostic{
		Pos: n.Pos(), End: n.End(),
		Message: fmt.Sprintf("%s %s %s misses the errors of Docent, which wrap it: write %s%s.Is(%s, %s)",
			types.ExprString(n.X), n.Op, types.ExprString(n.Y), not, name, types.ExprString(err), types.ExprString(target)),
	}
	if ok && !commented(file, n) {
		call := fmt.Sprintf("%s%s.Is(%s, %s)", not, name, c.text(err), c.text(target))
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message:   "use errors.Is",
			TextEdits: append(edits, analysis.TextEdit{Pos: n.Pos(), End: n.End(), NewText: []byte(call)}),
		}}
	}
	c.Report(d)
}

// commented reports whether a comment is in n, which a new text would lose.
func commented(file *ast.File, n ast.Node) bool {
	return slices.ContainsFunc(file.Comments, func(g *ast.CommentGroup) bool { return n.Pos() < g.Pos() && g.End() < n.End() })
}

func (c checker) choose(file *ast.File, n *ast.SwitchStmt, stack []ast.Node) {
	if n.Tag == nil || !isError(c.TypesInfo.TypeOf(n.Tag)) || c.meant(n.Tag, append(stack, ast.Node(n))) {
		return
	}
	var first ast.Expr
	var edits []analysis.TextEdit
	_, plain := ast.Unparen(n.Tag).(*ast.Ident) // or the tag would run once for each case
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List { //nolint:forcetypeassert,errcheck // a switch has no other clauses
			if first == nil && c.misses(n.Tag, e, e.Pos()) {
				first = e
			}
			text := c.text(n.Tag) + " == nil"
			if !c.TypesInfo.Types[e].IsNil() {
				name, imports, ok := c.errors(file, e.Pos())
				plain = plain && ok
				text, edits = fmt.Sprintf("%s.Is(%s, %s)", name, c.text(n.Tag), c.text(e)), append(edits, imports...)
			}
			edits = append(edits, analysis.TextEdit{Pos: e.Pos(), End: e.End(), NewText: []byte(text)})
		}
	}
	if first == nil {
		return
	}
	d := analysis.Diagnostic{
		Pos: n.Tag.Pos(), End: n.Tag.End(),
		Message: fmt.Sprintf("switch %s compares with ==, so case %s misses the errors of Docent, which wrap it: write switch { case errors.Is(%[1]s, %[2]s): ... }",
			types.ExprString(n.Tag), types.ExprString(first)),
	}
	if plain {
		edits = append(edits, analysis.TextEdit{Pos: n.Tag.Pos(), End: n.Tag.End()})
		slices.SortStableFunc(edits, func(a, b analysis.TextEdit) int { return int(a.Pos - b.Pos) })
		edits = slices.CompactFunc(edits, func(a, b analysis.TextEdit) bool { // one import
			return a.Pos == b.Pos && a.End == b.End && string(a.NewText) == string(b.NewText)
		})
		d.SuggestedFixes = []analysis.SuggestedFix{{Message: "use errors.Is", TextEdits: edits}}
	}
	c.Report(d)
}

// meant reports whether == is right: in a method Is, which errors.Is calls, and in a line that
// says so.
func (c checker) meant(err ast.Expr, stack []ast.Node) bool {
	for _, n := range stack {
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Is" {
			return true
		}
	}
	return c.meantLines[code.Line(c.Pass, err.Pos())]
}

// errors is the name of package errors at a position, and the edits that import it if the file does
// not. There is none if the name means something else there.
func (c checker) errors(file *ast.File, at token.Pos) (name string, edits []analysis.TextEdit, ok bool) {
	means := func(name string) types.Object {
		_, o := c.Pkg.Scope().Innermost(at).LookupParent(name, at)
		return o
	}
	for _, spec := range file.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path != "errors" {
			continue
		}
		name = "errors"
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if is, ok := means(name).(*types.PkgName); ok && is.Imported().Path() == "errors" {
			return name, nil, true
		}
	}
	if means("errors") != nil {
		return "errors", nil, false
	}
	pos, text := file.Name.End(), "\n\nimport \"errors\""
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			if pos, text = d.Pos(), "import \"errors\"\n\n"; d.Lparen.IsValid() {
				pos, text = d.Lparen+1, "\n\t\"errors\""
			}
			break
		}
	}
	return "errors", []analysis.TextEdit{{Pos: pos, End: pos, NewText: []byte(text)}}, true
}

// text is an expression as code. types.ExprString shortens some.
func (c checker) text(e ast.Expr) string {
	var b strings.Builder
	if format.Node(&b, c.Fset, e) != nil {
		return types.ExprString(e)
	}
	return b.String()
}
