// Package holdleak finds holds that are not released on some path.
package holdleak

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

// Analyzer reports a hold that a path neither releases nor hands on.
var Analyzer = &analysis.Analyzer{
	Name: "holdleak",
	Doc: `find holds that are neither released nor closed on some path

A hold that is not released keeps its lock, and all other contenders waiting,
until the client is closed. That is so after a loss, too. A hold that is returned,
stored or passed on is the business of whoever has it then. Test files are left
out: a test's client and server end with it.`,
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
			if !ok || !code.Acquires(pass.TypesInfo, call) || len(stack) == 0 {
				return true
			}
			method := code.Callee(pass.TypesInfo, call).Name()
			if answersItself(pass.TypesInfo, call) {
				return true
			}
			switch stack[len(stack)-1].(type) {
			case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
				dropped(pass, call, method)
				return true
			}
			given, ok := f.Gives(call, stack)
			switch {
			case !ok || given.Name == nil: // passed on, or stored
			case given.Name.Name == "_":
				if !refused(pass.TypesInfo, f, call, given) {
					dropped(pass, call, method)
				}
			case given.Value != nil && f.Declares(given.Value):
				check(pass, f, call, given, stack)
			}
			return true
		})
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

// answersItself reports whether the method of a call is one of a program's own type that has a
// method to end what it has acquired, too. Then it may keep the hold itself.
func answersItself(info *types.Info, call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || code.IsLibrary(code.Callee(info, call).Pkg()) {
		return false
	}
	return slices.ContainsFunc([]string{"Close", "Release", "Resign", "Shutdown", "Stop", "Unlock"}, func(name string) bool {
		o, _, _ := types.LookupFieldOrMethod(info.TypeOf(sel.X), true, code.Callee(info, call).Pkg(), name)
		_, ok := o.(*types.Func)
		return ok
	})
}

// refused reports whether a call whose hold is dropped is meant to fail: its lock is
// held in the same function already, or another outcome than a certain error is a failure.
func refused(info *types.Info, f *code.Function, call *ast.CallExpr, given code.Given) bool {
	found := false
	lock := code.Taken(info, call)
	f.Inspect(func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if other, ok := f.Gives(n, stack); ok && n.Pos() < call.Pos() && code.Acquires(info, n) && other.Value != nil && other.Name.Name != "_" {
				taken := code.Taken(info, n)
				found = found || lock != nil && taken != nil && code.Same(info, lock, taken)
			}
		case *ast.UnaryExpr: // !errors.Is(err, ...)
			is, ok := ast.Unparen(n.X).(*ast.CallExpr)
			if !ok || n.Op != token.NOT || !code.IsFunc(code.Callee(info, is), "errors", "Is", "As") {
				return true
			}
			found = found || given.Failed != nil && code.Same(info, is.Args[0], given.Failed)
		}
		return !found
	})
	return found
}

func dropped(pass *analysis.Pass, call *ast.CallExpr, method string) {
	pass.Report(analysis.Diagnostic{Pos: call.Pos(), End: call.End(), Message: fmt.Sprintf(
		"the hold that %s returns is dropped, so nothing can release the lock: keep it and close it, or use Do", method)})
}

// duty is what has to be done with a hold.
var duty = &code.Duty{Ends: append([]string{"Holds"}, code.Releasing...), Same: []string{"Hold"}}

func check(pass *analysis.Pass, f *code.Function, call *ast.CallExpr, given code.Given, stack []ast.Node) {
	owed := duty.Owes(f, given.Value)
	end := owed.Forgotten(given)
	if end == nil {
		return
	}
	why := fmt.Sprintf("line %d gives it another value without", code.Line(pass, end.Pos()))
	if _, ok := end.(*ast.ReturnStmt); ok {
		why = fmt.Sprintf("the return in line %d is reached without", code.Line(pass, end.Pos()))
	}
	name := given.Name.Name
	d := analysis.Diagnostic{
		Pos: call.Pos(), End: call.End(),
		Message: fmt.Sprintf("%s is neither released nor closed on every path, and others wait for the lock: %s; "+
			"write defer %s.Close() after the error check, or use Do", name, why, name),
		Related: []analysis.RelatedInformation{{Pos: end.Pos(), Message: "reached without " + name + ".Release or " + name + ".Close"}},
	}
	if after := errorCheck(pass.TypesInfo, given, stack); after != nil && !owed.Answered(f.Body) && !again(f, call, given) && !outlives(pass.TypesInfo, f, given.Value) {
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message:   "close " + name + " when the function ends",
			TextEdits: []analysis.TextEdit{code.Insert(pass, after, "defer "+name+".Close()")},
		}}
	}
	pass.Report(d)
}

// errorCheck is the statement behind an acquire that leaves the function if it has failed.
func errorCheck(info *types.Info, given code.Given, stack []ast.Node) ast.Node {
	if len(stack) < 2 || given.Failed == nil {
		return nil
	}
	block, ok := stack[len(stack)-2].(*ast.BlockStmt)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(block.List, func(s ast.Stmt) bool { return s == given.Stmt })
	if i < 0 || i+1 >= len(block.List) {
		return nil
	}
	check, ok := block.List[i+1].(*ast.IfStmt)
	if !ok || check.Init != nil || check.Else != nil || len(check.Body.List) == 0 {
		return nil
	}
	cond, ok := check.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ || !info.Types[cond.Y].IsNil() {
		return nil
	}
	if !code.Same(info, cond.X, given.Failed) {
		return nil
	}
	if _, leaves := check.Body.List[len(check.Body.List)-1].(*ast.ReturnStmt); !leaves {
		return nil
	}
	return check
}

// again reports whether a call may run again in the same run of the function, where a deferred
// release would come too late.
func again(f *code.Function, call *ast.CallExpr, given code.Given) bool {
	found := false
	f.After(given.Stmt, code.Given{}, func(n ast.Node) bool {
		found = found || n.Pos() <= call.Pos() && call.End() <= n.End()
		return !found
	})
	return found
}

// outlives reports whether somebody may need the hold when the function has ended: a goroutine, or who
// gets its context.
func outlives(info *types.Info, f *code.Function, hold *types.Var) bool {
	found := false
	ast.PreorderStack(f.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || info.Uses[id] != hold {
			return !found
		}
		found = found || slices.ContainsFunc(stack, func(n ast.Node) bool { _, ok := n.(*ast.GoStmt); return ok })
		if i := len(stack) - 3; i >= 0 {
			_, isReturn := stack[i].(*ast.ReturnStmt)
			call, ok := stack[i+1].(*ast.CallExpr) // hold.Context()
			found = found || isReturn && ok && code.IsContext(info.TypeOf(call))
		}
		return !found
	})
	return found
}
