package code

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// Duty is a kind of value that somebody has to answer for: a hold, or a picked call.
type Duty struct {
	Ends []string // the methods that end it
	Same []string // the fields and methods that are the value itself, or have it
	Asks []string // the fields and methods that are none of those; all others if empty
}

// Owed is a variable that has such a value.
type Owed struct {
	*Duty
	f      *Function
	value  *types.Var
	result bool // it is a named result
}

// Owes is the variable that a call of f gives its result to.
func (d *Duty) Owes(f *Function, v *types.Var) *Owed {
	o := &Owed{d, f, v, false}
	for result := range f.Sig.Results().Variables() {
		o.result = o.result || result == v
	}
	return o
}

// Forgotten follows all paths from the call that g gives to the variable. It is where the
// first of them drops the value unanswered: a return, or a statement that gives the variable
// another one. It is nil if no path does, or if somebody else has had the variable before.
func (o *Owed) Forgotten(g Given) ast.Node {
	if o.shared(g.Stmt.Pos()) {
		return nil
	}
	var again ast.Node
	ret := o.f.After(g.Stmt, g, func(n ast.Node) bool {
		switch {
		case o.Replaced(n):
			if again == nil {
				again = n
			}
			return false
		case o.Answered(n):
			return false
		}
		return true
	})
	if ret != nil {
		return ret
	}
	return again
}

// shared reports whether a literal above pos answers for the variable, or has its address: a
// deferred one, for example.
func (o *Owed) shared(pos token.Pos) bool {
	found := false
	ast.Inspect(o.f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			found = found || n.Pos() < pos && o.Answered(n)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && o.is(ast.Unparen(n.X))
		}
		return !found
	})
	return found
}

func (o *Owed) is(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && o.f.info.ObjectOf(id) == o.value
}

// Replaced reports whether n gives the variable another value, and does not answer for this one.
func (o *Owed) Replaced(n ast.Node) bool {
	var names []ast.Expr
	switch n := n.(type) {
	case *ast.AssignStmt:
		if slices.ContainsFunc(n.Rhs, func(from ast.Expr) bool { return o.Answered(from) }) && !o.blank(n) {
			return false
		}
		names = n.Lhs
	case *ast.ValueSpec:
		for _, name := range n.Names {
			names = append(names, name)
		}
	}
	return slices.ContainsFunc(names, o.is)
}

// blank reports whether n is _ = value, which keeps a compiler quiet.
func (o *Owed) blank(n *ast.AssignStmt) bool {
	if len(n.Lhs) != 1 || len(n.Rhs) != 1 {
		return false
	}
	to, ok := n.Lhs[0].(*ast.Ident)
	return ok && to.Name == "_" && o.is(ast.Unparen(n.Rhs[0]))
}

// Answered reports whether n ends the value, or hands it to someone who answers for it.
func (o *Owed) Answered(n ast.Node) bool {
	found := false
	ast.PreorderStack(n, nil, func(n ast.Node, stack []ast.Node) bool {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			found = found || o.result && len(n.Results) == 0
		case *ast.Ident:
			found = found || o.f.info.Uses[n] == o.value && !o.only(n, stack)
		}
		return !found
	})
	return found
}

// only reports whether a use of the value asks it something, and leaves it as it is.
func (o *Owed) only(use ast.Expr, stack []ast.Node) bool {
	if len(stack) == 0 {
		return false
	}
	switch p := stack[len(stack)-1].(type) {
	case *ast.ParenExpr:
		return o.only(p, stack[:len(stack)-1])
	case *ast.SelectorExpr:
		switch name := p.Sel.Name; {
		case slices.Contains(o.Same, name):
			return o.only(p, stack[:len(stack)-1])
		case slices.Contains(o.Ends, name):
			return false
		default:
			return len(o.Asks) == 0 || slices.Contains(o.Asks, name)
		}
	case *ast.BinaryExpr:
		return p.Op == token.EQL || p.Op == token.NEQ
	case *ast.AssignStmt:
		return slices.Contains(p.Lhs, use) || o.blank(p)
	}
	return false
}
