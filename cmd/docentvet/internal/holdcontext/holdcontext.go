// Package holdcontext finds work that goes on after the lock is lost, because it has
// the context of the acquire and not that of the hold.
package holdcontext

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports work between Acquire and Release that has the context of the Acquire.
var Analyzer = &analysis.Analyzer{
	Name: "holdcontext",
	Doc: `find work under a lock that does not end when the lock is lost

The context given to Acquire bounds the waiting and nothing after it. It does not
end when the lock is lost, and the context of the hold does. A function is left
alone if it asks the hold for its context, its state or a Guard, or hands the hold
to another function. So are test files, which play several programs in one.`,
	Requires: []*analysis.Analyzer{ctrlflow.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	pass = code.Heed(pass)
	for _, f := range code.Functions(pass) {
		if code.IsTest(pass, f.Node.Pos()) {
			continue
		}
		f.Inspect(func(n ast.Node, stack []ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !code.Acquires(pass.TypesInfo, call) || len(call.Args) == 0 {
				return true
			}
			given, ok := f.Gives(call, stack)
			if !ok || given.Value == nil || given.Name.Name == "_" || !f.Declares(given.Value) {
				return true
			}
			hold := holder{pass.TypesInfo, given.Value}
			if hold.asked(f.Body) {
				return true
			}
			contexts := code.Related(pass.TypesInfo, f.Body, call.Args[0], f.Body.End())
			f.After(given.Stmt, given, func(n ast.Node) bool {
				hold.work(n, contexts, func(work *ast.CallExpr, ctx ast.Expr) {
					report(pass, given.Name.Name, work, ctx)
				})
				return !hold.ends(n)
			})
			return true
		})
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

func report(pass *analysis.Pass, hold string, work *ast.CallExpr, ctx ast.Expr) {
	name := types.ExprString(ctx)
	pass.Report(analysis.Diagnostic{Pos: ctx.Pos(), End: ctx.End(), Message: fmt.Sprintf(
		"%s does not end when %s is lost, so %s goes on while another holds the lock: use %s.Context(), or Do, whose function gets a context that ends with both",
		name, hold, types.ExprString(work.Fun), hold)})
}

// holder follows the variable that has a hold.
type holder struct {
	info *types.Info
	hold *types.Var
}

// asked reports whether the body does more with the hold than to release it and to read what
// does not change: its name and its token.
func (h holder) asked(body ast.Node) bool {
	found := false
	ast.PreorderStack(body, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || h.info.Uses[id] != h.hold {
			return true
		}
		switch p := stack[len(stack)-1].(type) {
		case *ast.SelectorExpr:
			if slices.Contains(code.Releasing, p.Sel.Name) {
				found = found || h.elsewhere(p, stack[:len(stack)-1])
				break
			}
			found = found || !slices.Contains([]string{"FencingToken", "LockPath", "Path", "String"}, p.Sel.Name)
		case *ast.AssignStmt:
			found = found || !slices.Contains(p.Lhs, ast.Expr(id))
		case *ast.BinaryExpr:
		default:
			found = true
		}
		return !found
	})
	return found
}

// elsewhere reports whether a release is not where it stands: it is a value, or in a literal that
// is called at another time than the end of the function.
func (h holder) elsewhere(release ast.Expr, stack []ast.Node) bool {
	call, ok := stack[len(stack)-1].(*ast.CallExpr)
	if !ok || ast.Unparen(call.Fun) != release {
		return true
	}
	for i, n := range stack {
		lit, ok := n.(*ast.FuncLit)
		if !ok {
			continue
		}
		call, ok := stack[i-1].(*ast.CallExpr)
		if !ok || call.Fun != lit || i < 2 {
			return true
		}
		if _, deferred := stack[i-2].(*ast.DeferStmt); !deferred {
			return true
		}
	}
	return false
}

// ends reports whether n releases the hold at once.
func (h holder) ends(n ast.Node) bool {
	if _, later := n.(*ast.DeferStmt); later {
		return false
	}
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(code.Releasing, sel.Sel.Name) {
			id, ok := sel.X.(*ast.Ident)
			found = found || ok && h.info.Uses[id] == h.hold
		}
		return !found
	})
	return found
}

// work finds the calls in n that are work, and have one of the contexts.
func (h holder) work(n ast.Node, contexts code.Contexts, report func(*ast.CallExpr, ast.Expr)) {
	if _, later := n.(*ast.DeferStmt); later {
		return // it cleans up
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f := code.Callee(h.info, call)
		if f == nil || f.Pkg() == nil || code.IsLibrary(f.Pkg()) || code.Acquires(h.info, call) || code.Observes(f) || f.Pkg().Path() == "context" ||
			f.Pkg().Path() == "os/signal" || code.GivesUp(f) || h.hasOther(call, contexts) {
			return true
		}
		for i, arg := range call.Args {
			if params := f.Signature().Params(); i < params.Len() && code.IsContext(params.At(i).Type()) && contexts.Has(h.info, arg) {
				report(call, arg)
			}
		}
		return true
	})
}

// hasOther reports whether a call has a context besides those of the acquire.
func (h holder) hasOther(call *ast.CallExpr, contexts code.Contexts) bool {
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		return code.IsContext(h.info.TypeOf(arg)) && !contexts.Has(h.info, arg)
	})
}
