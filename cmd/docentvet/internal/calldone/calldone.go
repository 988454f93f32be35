// Package calldone finds picked calls of which the provider does not hear how they have ended.
package calldone

import (
	"fmt"
	"go/ast"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports a picked call whose Done some path does not call.
var Analyzer = &analysis.Analyzer{
	Name: "calldone",
	Doc: `find picked calls whose Done is not called on some path

A ServiceProvider of package discovery learns from Done which instances fail. A
call without Done counts as one that still runs. So the least loaded instance is
another one, and an instance that is being probed is not picked for a while. A
call that is returned, stored or passed on is the business of whoever has it
then. Test files are left out.`,
	Requires: []*analysis.Analyzer{ctrlflow.Analyzer},
	Run:      run,
}

var duty = &code.Duty{Ends: []string{"Done"}}

func run(pass *analysis.Pass) (any, error) {
	pass = code.Heed(pass)
	for _, f := range code.Functions(pass) {
		if code.IsTest(pass, f.Node.Pos()) {
			continue
		}
		f.Inspect(func(n ast.Node, stack []ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !code.Picks(pass.TypesInfo, call) || len(stack) == 0 {
				return true
			}
			switch stack[len(stack)-1].(type) {
			case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
				dropped(pass, call)
				return true
			}
			given, ok := f.Gives(call, stack)
			switch {
			case !ok || given.Name == nil: // passed on, or stored
			case given.Name.Name == "_":
				dropped(pass, call)
			case given.Value != nil && f.Declares(given.Value):
				check(pass, f, call, given)
			}
			return true
		})
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

func dropped(pass *analysis.Pass, call *ast.CallExpr) {
	pass.Report(analysis.Diagnostic{
		Pos: call.Pos(), End: call.End(),
		Message: "the call that Pick returns is dropped, so it counts as one that still runs: keep it, and call its Done",
	})
}

func check(pass *analysis.Pass, f *code.Function, call *ast.CallExpr, given code.Given) {
	end := duty.Owes(f, given.Value).Forgotten(given)
	if end == nil {
		return
	}
	name := given.Name.Name
	what := "line %d gives it another value"
	if _, ok := end.(*ast.ReturnStmt); ok {
		what = "the return in line %d is reached"
	}
	without := fmt.Sprintf(what+" without %s.Done", code.Line(pass, end.Pos()), name)
	pass.Report(analysis.Diagnostic{
		Pos: call.Pos(), End: call.End(),
		Message: fmt.Sprintf("Done of %s is not called on every path, so the provider counts it as one that still runs: %s; "+
			"give Done nil, the error of the instance, or context.Canceled if it was not called at all", name, without),
		Related: []analysis.RelatedInformation{{Pos: end.Pos(), Message: without}},
	})
}
