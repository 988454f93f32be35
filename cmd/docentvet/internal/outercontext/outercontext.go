// Package outercontext finds functions that run under a lock and work with the context
// from outside of it.
package outercontext

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Analyzer reports the context that a Do was given in the function that the Do runs.
var Analyzer = &analysis.Analyzer{
	Name: "outercontext",
	Doc: `find the outer context in a function that runs under a lock

The function given to Do, TryDo, Run, fence.Do and the like gets a context that
ends when the lock is lost. The context outside of it does not: work that has it
goes on while another contender holds the lock. An acquire of the same lock with
it is no re-entry and waits for itself. Of a test file, which plays several
programs in one, only that is reported.`,
	Run: run,
}

// scope is a function literal that runs under a lock, within the literals around it.
type scope struct {
	code.Under
	around *scope
	outer  code.Contexts
}

func run(pass *analysis.Pass) (any, error) {
	c := checker{code.Heed(pass)}
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			c.look(decl, decl, nil)
		}
	}
	return nil, nil //nolint:nilnil // an analyzer without a result
}

type checker struct{ *analysis.Pass }

// look finds the scopes in n, and reports what each does with contexts from outside.
func (c checker) look(decl, n ast.Node, in *scope) {
	ast.PreorderStack(n, nil, func(n ast.Node, stack []ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if under, ok := code.RunsUnder(c.TypesInfo, call); ok {
				inner := &scope{Under: under, around: in}
				if outer := code.Related(c.TypesInfo, decl, under.Outer, under.Body.Pos()); !c.endsWith(inner, outer) {
					inner.outer = outer.Without(c.TypesInfo, under.Body)
				}
				if in != nil {
					c.call(in, call)
					inner.outer = append(inner.outer, in.outer...)
					for _, arg := range call.Args {
						if ast.Unparen(arg) != under.Body {
							c.look(decl, arg, in)
						}
					}
				}
				c.look(decl, under.Body.Body, inner)
				return false
			}
		}
		if in != nil {
			if lit, ok := n.(*ast.FuncLit); ok && c.kept(in, lit, stack) {
				return false
			}
			c.node(in, n, stack)
		}
		return true
	})
}

// endsWith reports whether the contexts that a scope was given end with its hold: they come from the
// function of a scope around it, and it takes no other lock than that one.
func (c checker) endsWith(s *scope, given code.Contexts) bool {
	for around := s.around; around != nil; around = around.around {
		if around.Inner == nil || !given.Has(c.TypesInfo, around.Inner) {
			continue
		}
		if s.Lock != nil {
			return around.Lock != nil && code.Same(c.TypesInfo, s.Lock, around.Lock)
		}
		if !code.IsFunc(code.Callee(c.TypesInfo, s.Call), code.Fence, "Under") {
			return !code.IsHold(c.second(s.Body))
		}
		id, ok := ast.Unparen(s.Call.Args[1]).(*ast.Ident)
		return ok && slices.ContainsFunc(around.Body.Type.Params.List, func(p *ast.Field) bool {
			return slices.ContainsFunc(p.Names, func(name *ast.Ident) bool { return c.TypesInfo.Defs[name] == c.TypesInfo.Uses[id] })
		})
	}
	return false
}

// second is the type of the second parameter of a function.
func (c checker) second(lit *ast.FuncLit) types.Type {
	if sig, ok := c.TypesInfo.TypeOf(lit).(*types.Signature); ok && sig.Params().Len() > 1 {
		return sig.Params().At(1).Type()
	}
	return types.Typ[types.Invalid]
}

// kept reports whether a literal is put into a variable from outside of the scope, to be called when
// the scope has ended.
func (c checker) kept(in *scope, lit *ast.FuncLit, stack []ast.Node) bool {
	for _, n := range slices.Backward(stack) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if n.Fun == lit || !c.TypesInfo.Types[n.Fun].IsBuiltin() { // append
				return false
			}
		case *ast.AssignStmt:
			return slices.ContainsFunc(n.Lhs, func(to ast.Expr) bool {
				id, ok := to.(*ast.Ident)
				if !ok {
					return false
				}
				v := c.TypesInfo.ObjectOf(id)
				return v != nil && (v.Pos() < in.Body.Pos() || v.Pos() > in.Body.End())
			})
		case ast.Stmt:
			return false
		}
	}
	return false
}

// node reports n if it is work, or a wait, with a context from outside.
func (c checker) node(in *scope, n ast.Node, stack []ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		c.call(in, n)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.receive(in, n, stack)
		}
	case *ast.ForStmt:
		c.loop(in, n)
	}
}

func (c checker) call(in *scope, call *ast.CallExpr) {
	f := code.Callee(c.TypesInfo, call)
	if harmless(c.TypesInfo, f, call) || c.knowsHold(in, call) {
		return
	}
	sig, ok := c.TypesInfo.TypeOf(call.Fun).(*types.Signature)
	if !ok {
		return
	}
	for i, arg := range call.Args {
		if i >= sig.Params().Len() || !code.IsContext(sig.Params().At(i).Type()) || !in.outer.Has(c.TypesInfo, arg) {
			continue
		}
		name := types.ExprString(arg)
		switch lock := c.again(in, call); {
		case lock != nil && strings.HasPrefix(f.Name(), "Try"): // it is refused at once
		case lock != nil:
			c.report(in, arg, fmt.Sprintf("%s is held here, so taking it with %s waits for itself: "+
				"only the function's own context re-enters", types.ExprString(lock), name))
		case code.Derives(f) && c.onlyReleases(in, call), code.IsTest(c.Pass, call.Pos()):
		default:
			c.report(in, arg, fmt.Sprintf("%s does not end when the lock is lost, so %s goes on while another holds it",
				name, types.ExprString(call.Fun)))
		}
	}
}

// again is the lock that call takes, if that is one which is held around it.
func (c checker) again(in *scope, call *ast.CallExpr) ast.Expr {
	taken := code.Taken(c.TypesInfo, call)
	if taken == nil || code.IsShared(c.TypesInfo.TypeOf(taken)) {
		return nil
	}
	for s := in; s != nil; s = s.around {
		if s.Lock != nil && code.Same(c.TypesInfo, s.Lock, taken) {
			return taken
		}
	}
	return nil
}

// harmless reports whether a call with a context from outside is no work, or ends with the
// hold all the same.
func harmless(info *types.Info, f *types.Func, call *ast.CallExpr) bool {
	if f == nil {
		return false
	}
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && code.IsHold(info.TypeOf(sel.X)) {
		return true // Guard, Confirm, Release, AwaitSuccessor: they know the hold
	}
	pkg := ""
	if f.Pkg() != nil {
		pkg = f.Pkg().Path()
	}
	switch {
	case pkg == "context":
		return !code.Derives(f) // WithoutCancel, Cause, AfterFunc
	case code.IsFunc(f, code.Fence, "Under"): // which ends with its hold
		return true
	}
	return code.GivesUp(f) || code.Observes(f)
}

// knowsHold reports whether a call gets a hold, or a context of one, beside the context from outside.
// It may end with that.
func (c checker) knowsHold(in *scope, call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		t := c.TypesInfo.TypeOf(arg)
		return t != nil && (code.IsHold(t) || code.IsContext(t) && !in.outer.Has(c.TypesInfo, arg))
	})
}

// onlyReleases reports whether the context that a call derives is for calls of holds alone.
func (c checker) onlyReleases(in *scope, call *ast.CallExpr) bool {
	var to *types.Var
	ast.Inspect(in.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.AssignStmt); ok && len(s.Rhs) == 1 && ast.Unparen(s.Rhs[0]) == call {
			if id, ok := s.Lhs[0].(*ast.Ident); ok {
				to, _ = c.TypesInfo.ObjectOf(id).(*types.Var)
			}
		}
		return to == nil
	})
	if to == nil {
		return false
	}
	work := false
	ast.PreorderStack(in.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || c.TypesInfo.Uses[id] != to {
			return true
		}
		use, ok := stack[len(stack)-1].(*ast.CallExpr)
		work = work || !ok || !harmless(c.TypesInfo, code.Callee(c.TypesInfo, use), use)
		return true
	})
	return !work
}

// receive reports <-ctx.Done() of a context from outside, unless it stands in a select
// beside a context that ends with the hold, or the result of work.
func (c checker) receive(in *scope, n *ast.UnaryExpr, stack []ast.Node) {
	from := c.done(n)
	if from == nil || code.IsTest(c.Pass, n.Pos()) || !in.outer.Has(c.TypesInfo, from) {
		return
	}
	for _, around := range slices.Backward(stack) {
		s, ok := around.(*ast.SelectStmt)
		if !ok {
			continue
		}
		for _, clause := range s.Body.List {
			other := false
			if comm := clause.(*ast.CommClause).Comm; comm != nil { //nolint:forcetypeassert,errcheck // a select has no other clauses
				ast.Inspect(comm, func(n ast.Node) bool {
					if e := c.done(n); e != nil && !in.outer.Has(c.TypesInfo, e) || c.result(n) {
						other = true
					}
					return !other
				})
			} else {
				other = true // a select with a default does not wait
			}
			if other {
				return
			}
		}
		break
	}
	c.report(in, from, fmt.Sprintf("%s does not end when the lock is lost, so this waits on while another holds it", types.ExprString(from)))
}

// result reports whether n receives an error: that is how work ends, which has a context of its own.
func (c checker) result(n ast.Node) bool {
	receive, ok := n.(*ast.UnaryExpr)
	return ok && receive.Op == token.ARROW && types.Identical(c.TypesInfo.TypeOf(receive), types.Universe.Lookup("error").Type())
}

// done is the context of <-ctx.Done().
func (c checker) done(n ast.Node) ast.Expr {
	receive, ok := n.(*ast.UnaryExpr)
	if !ok || receive.Op != token.ARROW {
		return nil
	}
	return c.asked(receive.X, "Done")
}

// asked is the context whose method a call calls.
func (c checker) asked(e ast.Expr, method string) ast.Expr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return nil
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != method || !code.IsContext(c.TypesInfo.TypeOf(sel.X)) {
		return nil
	}
	return sel.X
}

// loop reports for ctx.Err() == nil of a context from outside.
func (c checker) loop(in *scope, n *ast.ForStmt) {
	cond, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.EQL {
		return
	}
	from := c.asked(cond.X, "Err")
	if from != nil && !code.IsTest(c.Pass, n.Pos()) && in.outer.Has(c.TypesInfo, from) {
		c.report(in, from, fmt.Sprintf("%s does not end when the lock is lost, so this loop goes on while another holds it", types.ExprString(from)))
	}
}

func (c checker) report(in *scope, at ast.Expr, why string) {
	d := analysis.Diagnostic{Pos: at.Pos(), End: at.End()}
	switch {
	case in.Inner == nil || in.Inner.Name == "_":
		d.Message = why + "; name the context of the function, and use that"
		if outer, ok := ast.Unparen(at).(*ast.Ident); ok && in.Inner != nil && c.rename(in, outer) {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   fmt.Sprintf("call the context of the function %s", outer.Name),
				TextEdits: []analysis.TextEdit{{Pos: in.Inner.Pos(), End: in.Inner.End(), NewText: []byte(outer.Name)}},
			}}
		}
	default:
		d.Message = fmt.Sprintf("%s; use %s, the context of the function", why, in.Inner.Name)
		inner := c.TypesInfo.Defs[in.Inner]
		if _, seen := c.Pkg.Scope().Innermost(at.Pos()).LookupParent(in.Inner.Name, at.Pos()); seen == inner {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   "use " + in.Inner.Name,
				TextEdits: []analysis.TextEdit{{Pos: at.Pos(), End: at.End(), NewText: []byte(in.Inner.Name)}},
			}}
		}
	}
	c.Report(d)
}

// rename reports whether each use of outer in the function is a context that is passed on to
// work, so that all of them are to be the function's own.
func (c checker) rename(in *scope, outer *ast.Ident) bool {
	v := c.TypesInfo.ObjectOf(outer)
	all := true
	ast.PreorderStack(in.Body.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || c.TypesInfo.Uses[id] != v {
			return true
		}
		switch p := stack[len(stack)-1].(type) {
		case *ast.CallExpr:
			all = all && !harmless(c.TypesInfo, code.Callee(c.TypesInfo, p), p)
		case *ast.SelectorExpr:
		default:
			all = false
		}
		return true
	})
	return all
}
