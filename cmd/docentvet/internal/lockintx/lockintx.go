// Package lockintx finds locks that are taken while a transaction of a database is open.
package lockintx

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports a lock that is taken between Begin and Commit or Rollback.
var Analyzer = &analysis.Analyzer{
	Name: "lockintx",
	Doc: `find locks that are taken inside an open transaction

While the lock is waited for, the transaction keeps its connection and its rows.
The holder of the lock may need one of them, and then both wait. What the
transaction has read before is older than the lock. So take the lock first;
fence.Tx takes it, begins, commits and releases in this order.`,
	Requires: []*analysis.Analyzer{ctrlflow.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	pass = code.Heed(pass)
	for _, f := range code.Functions(pass) {
		seen := map[*ast.CallExpr]bool{}
		report := func(lock *ast.CallExpr, tx string) {
			if seen[lock] {
				return
			}
			seen[lock] = true
			pass.Report(analysis.Diagnostic{Pos: lock.Pos(), End: lock.End(), Message: fmt.Sprintf(
				"%s takes a lock while the transaction %s is open, which keeps rows and a connection meanwhile: "+
					"take the lock first and begin then, or use fence.Tx", types.ExprString(lock.Fun), tx)})
		}
		f.Inspect(func(n ast.Node, stack []ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !begins(pass.TypesInfo, call) {
				return true
			}
			given, ok := f.Gives(call, stack)
			if ok && given.Value != nil {
				w := open{pass.TypesInfo, f.Body, given.Value, report}
				f.After(given.Stmt, given, w.visit)
			}
			return true
		})
		for p := range f.Sig.Params().Variables() { // a transaction that the caller has begun
			if isTx(p.Type()) && p.Name() != "" && p.Name() != "_" {
				w := open{pass.TypesInfo, f.Body, p, report}
				f.All(code.Given{Value: p}, w.visit) // and that is there
			}
		}
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

// begins reports whether call begins a transaction: one of database/sql, or of a library that
// has the same methods.
func begins(info *types.Info, call *ast.CallExpr) bool {
	f := code.Callee(info, call)
	if f == nil || f.Signature().Recv() == nil || !strings.HasPrefix(f.Name(), "Begin") {
		return false
	}
	results := f.Signature().Results()
	return results.Len() == 2 && isTx(results.At(0).Type())
}

// isTx reports whether t is a transaction. A handle that is one only after its own Begin, and
// one whose methods return handles, is none.
func isTx(t types.Type) bool {
	returns := func(name string) *types.Tuple {
		o, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
		f, ok := o.(*types.Func)
		if !ok {
			return nil
		}
		return f.Signature().Results()
	}
	fails := func(name string) bool {
		results := returns(name)
		return results.Len() == 1 && types.TypeString(results.At(0).Type(), nil) == "error"
	}
	return fails("Commit") && fails("Rollback") && !fails("Begin")
}

// open follows a transaction until its end.
type open struct {
	info   *types.Info
	body   *ast.BlockStmt
	tx     *types.Var
	report func(lock *ast.CallExpr, tx string)
}

func (o open) visit(n ast.Node) bool {
	if _, later := n.(*ast.DeferStmt); later {
		return true
	}
	if _, beside := n.(*ast.GoStmt); beside {
		return true
	}
	ended := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if code.Taken(o.info, n) != nil && !ended {
				o.report(n, o.tx.Name())
			}
			ended = ended || o.ends(n)
		}
		return true
	})
	return !ended
}

// ends reports whether call ends the transaction, or may: it is its Commit, a function of such a
// name that has it or has been given it before, one that is given the Commit, or a variable with a
// function that commits.
func (o open) ends(call *ast.CallExpr) bool {
	if slices.ContainsFunc(call.Args, o.hands) {
		return true
	}
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.SelectorExpr:
		if o.is(fun.X) {
			return ending(fun.Sel.Name)
		}
		return ending(fun.Sel.Name) && (slices.ContainsFunc(call.Args, o.is) || o.carries(fun.X))
	case *ast.Ident:
		if _, isVar := o.info.Uses[fun].(*types.Var); isVar {
			return o.committed(fun)
		}
		return ending(fun.Name) && slices.ContainsFunc(call.Args, o.is)
	case *ast.FuncLit:
		return o.commits(fun)
	}
	return false
}

func ending(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"commit", "rollback", "abort", "finish", "complete", "close", "end", "done"}, func(s string) bool {
		return strings.Contains(name, s)
	})
}

func (o open) is(e ast.Expr) bool {
	if ref, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && ref.Op == token.AND {
		e = ref.X
	}
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && o.info.ObjectOf(id) == o.tx
}

// hands reports whether an argument is a function that commits, which may be called at once. One
// that rolls back is for later.
func (o open) hands(arg ast.Expr) bool {
	found := false
	ast.Inspect(arg, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		found = found || ok && o.is(sel.X) && strings.Contains(strings.ToLower(sel.Sel.Name), "commit")
		return !found
	})
	return found
}

// carries reports whether e is a variable that was made with the transaction, such as a unit of work.
func (o open) carries(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	found := false
	ast.Inspect(o.body, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok || !slices.ContainsFunc(s.Lhs, func(to ast.Expr) bool {
			name, ok := to.(*ast.Ident)
			return ok && o.info.ObjectOf(name) == o.info.Uses[id]
		}) {
			return true
		}
		for _, from := range s.Rhs {
			ast.PreorderStack(from, nil, func(n ast.Node, stack []ast.Node) bool {
				name, ok := n.(*ast.Ident)
				if ok && o.is(name) {
					found = found || len(stack) == 0 || !isSelector(stack[len(stack)-1]) // as in tx.Query()
				}
				return !found
			})
		}
		return !found
	})
	return found
}

// committed reports whether the function in a variable may end the transaction.
func (o open) committed(name *ast.Ident) bool {
	found := false
	ast.Inspect(o.body, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok || len(s.Lhs) != len(s.Rhs) {
			return true
		}
		for i, to := range s.Lhs {
			if id, ok := to.(*ast.Ident); ok && o.info.ObjectOf(id) == o.info.Uses[name] {
				found = found || o.commits(s.Rhs[i])
			}
		}
		return true
	})
	return found
}

// commits reports whether a function value names Commit or Rollback of the transaction.
func (o open) commits(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || o.is(n.X) && ending(n.Sel.Name)
		case *ast.CallExpr:
			found = found || o.ends(n)
		}
		return !found
	})
	return found
}

func isSelector(n ast.Node) bool {
	_, ok := n.(*ast.SelectorExpr)
	return ok
}
