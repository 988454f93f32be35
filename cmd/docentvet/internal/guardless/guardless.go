// Package guardless finds guards that guard nothing: without a hold, or with a number that no lock gave.
package guardless

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports guards and tokens that have no hold of an exclusive lock behind them.
var Analyzer = &analysis.Analyzer{
	Name: "guardless",
	Doc: `find guards and fencing tokens without a hold

Guard after Release is always refused. A token that no lock gave, such as a
constant, a time or a sequence number, lets late writes through. Package fence
refuses the holds of a read lock and of a semaphore, which others have beside
them. Database.Tx needs the context of fence.Do, fence.Under or Database.Do:
that of the hold carries no token.`,
	Requires: []*analysis.Analyzer{ctrlflow.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	c := checker{code.Heed(pass), map[*ast.FuncLit]bool{}}
	for _, file := range pass.Files {
		c.find(file)
	}
	for _, f := range code.Functions(pass) {
		if code.IsTest(pass, f.Node.Pos()) {
			continue // tests are full of tokens that no lock gave, and of guards that shall be refused
		}
		f.Inspect(func(n ast.Node, _ []ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				c.token(n)
				c.refused(n)
			case *ast.ExprStmt:
				c.late(f, n, n.X)
			case *ast.AssignStmt:
				if len(n.Rhs) == 1 {
					c.late(f, n, n.Rhs[0])
				}
			}
			return true
		})
		c.untaken(f)
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

type checker struct {
	*analysis.Pass
	run map[*ast.FuncLit]bool // literals that a recipe runs, with a context that has no token
}

// find finds the literals that a recipe runs. The context of one inside a fence may have the
// fence's token.
func (c checker) find(file *ast.File) {
	ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := code.Callee(c.TypesInfo, call); {
		case f != nil && f.Pkg() != nil && f.Pkg().Path() == code.Fence:
			return false
		case code.IsMethod(f, code.Recipes, "Do", "Run", "TryDo"):
			if lit, ok := ast.Unparen(call.Args[len(call.Args)-1]).(*ast.FuncLit); ok {
				c.run[lit] = true
			}
		}
		return true
	})
}

func (c checker) report(n ast.Node, format string, args ...any) {
	c.Report(analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Message: fmt.Sprintf(format, args...)})
}

// late reports a Guard or Confirm of a hold behind its Release.
func (c checker) late(f *code.Function, stmt ast.Node, e ast.Expr) {
	hold := c.of(e, "Close", "Release")
	if hold == nil || c.shared(f, hold) {
		return
	}
	f.After(stmt, code.Given{}, func(n ast.Node) bool {
		again := false
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for _, name := range n.Names {
					again = again || c.TypesInfo.ObjectOf(name) == hold
				}
			case *ast.FuncLit:
				return false
			case *ast.CallExpr:
				if c.of(n, "Guard") == hold {
					c.report(n, "%s was released in line %d, so this Guard is always refused: guard before the release",
						hold.Name(), code.Line(c.Pass, stmt.Pos()))
					again = true
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					id, ok := to.(*ast.Ident)
					again = again || ok && c.TypesInfo.ObjectOf(id) == hold
				}
			}
			return true
		})
		return !again
	})
}

// shared reports whether something other than the statements of f may give hold another value:
// a literal that assigns to it, or somebody who has its address.
func (c checker) shared(f *code.Function, hold *types.Var) bool {
	found := false
	is := func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && c.TypesInfo.Uses[id] == hold
	}
	ast.PreorderStack(f.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && is(n.X)
		case *ast.AssignStmt:
			literal := slices.ContainsFunc(stack, func(n ast.Node) bool { _, ok := n.(*ast.FuncLit); return ok })
			found = found || literal && slices.ContainsFunc(n.Lhs, is)
		}
		return !found
	})
	return found
}

// of is the variable of a hold whose method e calls.
func (c checker) of(e ast.Expr, methods ...string) *types.Var {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !code.IsMethod(code.Callee(c.TypesInfo, call), code.Recipes, methods...) {
		return nil
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !code.IsHold(c.TypesInfo.TypeOf(sel.X)) {
		return nil
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := c.TypesInfo.ObjectOf(id).(*types.Var)
	return v
}

// token reports a token that no lock gave.
func (c checker) token(call *ast.CallExpr) {
	f := code.Callee(c.TypesInfo, call)
	if !code.IsMethod(f, code.Fence, "Check", "Do") {
		return
	}
	params := f.Signature().Params()
	for i, arg := range call.Args {
		if i < params.Len() && params.At(i).Name() == "token" {
			if what := c.noToken(arg); what != "" {
				c.report(arg, "%s is %s and no fencing token, so a late write of an older holder is let through: use the hold's FencingToken()",
					types.ExprString(arg), what)
			}
		}
	}
}

// noToken says what e is, if that is certainly no token.
func (c checker) noToken(e ast.Expr) string {
	if c.TypesInfo.Types[e].Value != nil {
		return "a constant"
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if c.TypesInfo.Types[e.Fun].IsType() && len(e.Args) == 1 { // int64(...)
			return c.noToken(e.Args[0])
		}
		if f := code.Callee(c.TypesInfo, e); code.IsMethod(f, "time", "Unix", "UnixMicro", "UnixMilli", "UnixNano") {
			return "a time"
		}
	case *ast.SelectorExpr:
		if v, ok := c.TypesInfo.Uses[e.Sel].(*types.Var); ok && v.IsField() && v.Name() == "Sequence" && v.Pkg().Path() == code.Recipes {
			return "a sequence number, which starts again,"
		}
	}
	return ""
}

// refused reports fencing with a lock that several have at once.
func (c checker) refused(call *ast.CallExpr) {
	if !code.IsFunc(code.Callee(c.TypesInfo, call), code.Fence, "Do", "Tx", "Under") || len(call.Args) < 2 {
		return
	}
	switch t := types.TypeString(c.TypesInfo.TypeOf(call.Args[1]), nil); t {
	case "*" + code.Recipes + ".ReadLock":
		c.report(call.Args[1], "%s is shared by readers, so package fence always refuses it: take the write lock", types.ExprString(call.Args[1]))
	case "*" + code.Recipes + ".Lease":
		c.report(call.Args[1], "%s is a permit, which others have beside it, so package fence always refuses it: take a mutex", types.ExprString(call.Args[1]))
	}
}

// untaken reports a Database.Tx with the context of a hold, or that of the acquire, in the
// function that acquires. Neither carries the token.
func (c checker) untaken(f *code.Function) {
	hold := c.given(f)
	f.Inspect(func(n ast.Node, stack []ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !code.Acquires(c.TypesInfo, call) || len(call.Args) == 0 {
			return true
		}
		given, ok := f.Gives(call, stack)
		if !ok || given.Value == nil || given.Name.Name == "_" {
			return true
		}
		bare := code.Related(c.TypesInfo, f.Body, call.Args[0], f.Body.End())
		f.After(given.Stmt, given, func(n ast.Node) bool {
			c.txs(n, func(tx *ast.CallExpr) {
				if given.Value == c.of(tx.Args[0], "Context") || bare.Has(c.TypesInfo, tx.Args[0]) && !c.parameter(f, tx.Args[0]) {
					c.noTx(tx, given.Name.Name)
				}
			})
			return true
		})
		return true
	})
	if hold == nil {
		return
	}
	f.Inspect(func(n ast.Node, _ []ast.Node) bool {
		c.txs(n, func(tx *ast.CallExpr) {
			id, ok := ast.Unparen(tx.Args[0]).(*ast.Ident)
			if c.of(tx.Args[0], "Context") != nil || ok && c.TypesInfo.ObjectOf(id) == f.Sig.Params().At(0) {
				c.noTx(tx, hold.Name())
			}
		})
		_, isCall := n.(*ast.CallExpr)
		return !isCall
	})
}

// given is the hold that a function literal gets from a Do of a recipe.
func (c checker) given(f *code.Function) *types.Var {
	if lit, ok := f.Node.(*ast.FuncLit); !ok || !c.run[lit] || f.Sig.Params().Len() != 2 || !code.IsContext(f.Sig.Params().At(0).Type()) {
		return nil
	}
	if v := f.Sig.Params().At(1); code.IsHold(v.Type()) {
		return v
	}
	return nil
}

// parameter reports whether e is a parameter of f, whose caller may have put a token into it.
func (c checker) parameter(f *code.Function, e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	for p := range f.Sig.Params().Variables() {
		if c.TypesInfo.ObjectOf(id) == p {
			return true
		}
	}
	return false
}

// txs finds the calls of Database.Tx in n, but for those in function literals.
func (c checker) txs(n ast.Node, found func(*ast.CallExpr)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok && code.IsMethod(code.Callee(c.TypesInfo, call), code.Fence, "Tx") && len(call.Args) == 3 {
			found(call)
		}
		return true
	})
}

func (c checker) noTx(tx *ast.CallExpr, hold string) {
	c.report(tx, "the context of this Tx carries no fencing token, so it is always refused: call it in the function of fence.Under(ctx, %s, ...), with that one's context", hold)
}
