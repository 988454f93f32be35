// Package deferinloop finds holds of a loop that are released after the loop only.
package deferinloop

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports a deferred release of a hold that the loop takes again before.
var Analyzer = &analysis.Analyzer{
	Name: "deferinloop",
	Doc: `find an acquire in a loop whose release is deferred in the same loop

A deferred call runs when the function ends, not the round of the loop. So each
round keeps its hold. If the next round takes the same lock, it waits for itself.`,
	Requires: []*analysis.Analyzer{ctrlflow.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	pass = code.Heed(pass)
	for _, f := range code.Functions(pass) {
		type acquire struct {
			call  *ast.CallExpr
			given code.Given
		}
		acquired := map[*types.Var][]acquire{}
		f.Inspect(func(n ast.Node, stack []ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && code.Acquires(pass.TypesInfo, call) {
				if given, ok := f.Gives(call, stack); ok && given.Value != nil {
					acquired[given.Value] = append(acquired[given.Value], acquire{call, given})
				}
			}
			return true
		})
		f.Inspect(func(n ast.Node, _ []ast.Node) bool {
			deferred, ok := n.(*ast.DeferStmt)
			if !ok {
				return true
			}
			for hold := range released(pass.TypesInfo, deferred) {
				for _, a := range acquired[hold] {
					if !f.Declares(hold) || !reaches(f, a.given, deferred, hold) || !again(f, deferred, a.call, hold) {
						continue
					}
					pass.Report(analysis.Diagnostic{
						Pos: deferred.Pos(), End: deferred.End(),
						Message: fmt.Sprintf("%s is released when the function ends, and the loop acquires again before that: "+
							"move the body of the loop to a function of its own, or use Do; to hold several locks at once, use InterProcessMultiLock", hold.Name()),
						Related: []analysis.RelatedInformation{{Pos: a.call.Pos(), End: a.call.End(), Message: "acquired here in each round"}},
					})
				}
			}
			return true
		})
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

// released are the variables whose Release or Close a defer statement calls.
func released(info *types.Info, deferred *ast.DeferStmt) map[*types.Var]bool {
	found := map[*types.Var]bool{}
	ast.Inspect(deferred, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Close" && sel.Sel.Name != "Release" || !code.IsHold(info.TypeOf(sel.X)) {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok {
			if v, ok := info.ObjectOf(id).(*types.Var); ok {
				found[v] = true
			}
		}
		return true
	})
	return found
}

var duty = &code.Duty{Ends: append([]string{"Holds"}, code.Releasing...), Same: []string{"Hold"}}

// reaches reports whether the hold of an acquire may be that which is released by the defer
// statement.
func reaches(f *code.Function, given code.Given, deferred *ast.DeferStmt, hold *types.Var) bool {
	owed, found := duty.Owes(f, hold), false
	f.After(given.Stmt, given, func(n ast.Node) bool {
		found = found || n == deferred
		return !found && !owed.Replaced(n)
	})
	return found
}

// again reports whether call may run after the defer statement, with the hold not released before.
func again(f *code.Function, deferred ast.Node, call *ast.CallExpr, hold *types.Var) bool {
	owed, found := duty.Owes(f, hold), false
	f.After(deferred, code.Given{}, func(n ast.Node) bool {
		found = found || n.Pos() <= call.Pos() && call.End() <= n.End()
		return !found && !owed.Answered(n)
	})
	return found
}
