package code

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// facts are the values that a path has given to variables, or seen in conditions. The names are
// those of term. A value is nil where the expression is.
type facts map[string]fact

type fact struct {
	value constant.Value
	of    []*types.Var // a new value of one of these ends the fact
}

// String is the same for the same facts.
func (f facts) String() string {
	all := make([]string, 0, len(f))
	for name, fact := range f {
		all = append(all, fmt.Sprint(name, "=", fact.value))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// assigned are the variables and fields that a package gives another value than the first, by the
// functions that do.
type assigned map[*types.Var]map[ast.Node]bool

func assignments(pass *analysis.Pass) assigned {
	all := assigned{}
	for _, file := range pass.Files {
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			for _, to := range targets(n) {
				v, _ := variable(pass.TypesInfo, to)
				if id, ok := ast.Unparen(to).(*ast.Ident); v == nil || ok && pass.TypesInfo.Defs[id] != nil {
					continue
				}
				if all[v] == nil {
					all[v] = map[ast.Node]bool{}
				}
				all[v][innermost(stack)] = true
			}
			return true
		})
	}
	return all
}

// targets are the expressions that a statement gives a value to.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		return slices.DeleteFunc([]ast.Expr{n.Key, n.Value}, func(e ast.Expr) bool { return e == nil })
	case *ast.ValueSpec:
		var all []ast.Expr
		for _, name := range n.Names {
			all = append(all, name)
		}
		return all
	}
	return nil
}

// variable is the variable or field that e names, and the variable that it is part of or found by.
func variable(info *types.Info, e ast.Expr) (v, root *types.Var) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ = info.ObjectOf(e).(*types.Var)
		root = v
	case *ast.SelectorExpr:
		v, _ = info.ObjectOf(e.Sel).(*types.Var)
		if _, root = variable(info, e.X); root == nil {
			root = v
		}
	case *ast.IndexExpr:
		return variable(info, e.X)
	case *ast.StarExpr:
		return variable(info, e.X)
	}
	if v != nil {
		v = v.Origin()
	}
	return v, root
}

func innermost(stack []ast.Node) ast.Node {
	for _, n := range slices.Backward(stack) {
		switch n.(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return n
		}
	}
	return nil
}

// term is the name of an expression that stays the same until one of some variables gets another
// value. There is none if calls may change it.
func (f *Function) term(e ast.Expr) (name string, of []*types.Var, ok bool) {
	if v, known := f.constant(e); known {
		return fmt.Sprint(v), nil, true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, isVar := f.info.ObjectOf(e).(*types.Var)
		if !isVar || !f.settled(v) {
			return "", nil, false
		}
		return fmt.Sprint(v.Name(), v.Pos()), []*types.Var{v}, true
	case *ast.SelectorExpr:
		v, isVar := f.info.ObjectOf(e.Sel).(*types.Var)
		switch {
		case !isVar:
			return "", nil, false
		case !v.IsField():
			return v.Pkg().Path() + "." + v.Name(), []*types.Var{v}, f.settled(v)
		}
		name, of, ok = f.term(e.X)
		_, far := f.info.TypeOf(e.X).Underlying().(*types.Pointer)
		if far = far || len(of) > 0 && !f.Declares(of[0]); far && (v.Pkg() != f.pkg || len(f.assigned[v.Origin()]) > 0) {
			return "", nil, false
		}
		return name + "." + v.Name(), of, ok
	case *ast.StarExpr:
		name, of, ok = f.term(e.X)
		return "*" + name, of, ok
	case *ast.CallExpr:
		if id, isName := ast.Unparen(e.Fun).(*ast.Ident); isName && len(e.Args) == 1 && f.info.Uses[id] == types.Universe.Lookup("len") {
			name, of, ok = f.term(e.Args[0])
			return "len(" + name + ")", of, ok
		}
	}
	return "", nil, false
}

// settled reports whether the statements of the function, and nothing else, give v another value.
func (f *Function) settled(v *types.Var) bool {
	own := f.Declares(v)
	for by := range f.assigned[v] {
		if !own || by != f.Node {
			return false
		}
	}
	return true
}

// constant is the value of a constant expression, or nil of nil.
func (f *Function) constant(e ast.Expr) (constant.Value, bool) {
	t := f.info.Types[ast.Unparen(e)]
	return t.Value, t.Value != nil || t.IsNil()
}

// comparison is x == y or x < y, or the contrary.
type comparison struct {
	op   token.Token
	x, y ast.Expr
	not  bool
}

func compared(e ast.Expr) (comparison, bool) {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return comparison{}, false
	}
	switch b.Op {
	case token.EQL:
		return comparison{token.EQL, b.X, b.Y, false}, true
	case token.NEQ:
		return comparison{token.EQL, b.X, b.Y, true}, true
	case token.LSS:
		return comparison{token.LSS, b.X, b.Y, false}, true
	case token.GTR:
		return comparison{token.LSS, b.Y, b.X, false}, true
	case token.GEQ:
		return comparison{token.LSS, b.X, b.Y, true}, true
	case token.LEQ:
		return comparison{token.LSS, b.Y, b.X, true}, true
	}
	return comparison{}, false
}

func (f *Function) comparisonTerm(c comparison) (name string, of []*types.Var, ok bool) {
	x, ofX, okX := f.term(c.x)
	y, ofY, okY := f.term(c.y)
	if c.op == token.EQL && y < x {
		x, y = y, x
	}
	return x + c.op.String() + y, slices.Concat(ofX, ofY), okX && okY
}

// value is what is known of e.
func (f *Function) value(known facts, e ast.Expr) (constant.Value, bool) {
	if v, ok := f.constant(e); ok {
		return v, true
	}
	switch x := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			v, ok := f.value(known, x.X)
			return constant.MakeBool(ok && !constant.BoolVal(v)), ok
		}
	case *ast.BinaryExpr:
		if c, ok := compared(x); ok {
			v, ok := f.compare(known, c)
			return constant.MakeBool(v), ok
		}
		if all := x.Op == token.LAND; all || x.Op == token.LOR {
			left, okLeft := f.value(known, x.X)
			right, okRight := f.value(known, x.Y)
			if okLeft && constant.BoolVal(left) != all || okRight && constant.BoolVal(right) != all {
				return constant.MakeBool(!all), true // one decides
			}
			return left, okLeft && okRight
		}
	case *ast.CallExpr:
		if len(x.Args) == 1 {
			if v, ok := f.value(known, x.Args[0]); ok && v == nil { // len(nil)
				return constant.MakeInt64(0), f.info.Types[x.Fun].IsBuiltin()
			}
		}
	}
	name, _, ok := f.term(e)
	is, found := known[name]
	return is.value, ok && found
}

// compare is whether a comparison is true, if that is known.
func (f *Function) compare(known facts, c comparison) (is, ok bool) {
	x, okX := f.value(known, c.x)
	y, okY := f.value(known, c.y)
	if okX && okY {
		if x == nil || y == nil {
			return c.op == token.EQL && (x == nil) == (y == nil) != c.not, c.op == token.EQL
		}
		if x.Kind() == y.Kind() { // or one of them is in an interface
			return constant.Compare(x, c.op, y) != c.not, true
		}
	}
	name, _, ok := f.comparisonTerm(c)
	fact, found := known[name]
	return ok && found && constant.BoolVal(fact.value) != c.not, ok && found
}

// suppose adds to what is known that e has this value. It is not possible if the contrary is known.
func (f *Function) suppose(known facts, e ast.Expr, value bool) (with facts, possible bool) {
	if is, ok := f.value(known, e); ok {
		return known, constant.BoolVal(is) == value
	}
	switch x := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			return f.suppose(known, x.X, !value)
		}
	case *ast.BinaryExpr:
		if all := x.Op == token.LAND; all || x.Op == token.LOR {
			if value == all { // both have it
				known, _ = f.suppose(known, x.X, value)
				return f.suppose(known, x.Y, value)
			}
			for _, side := range [][2]ast.Expr{{x.X, x.Y}, {x.Y, x.X}} {
				if is, ok := f.value(known, side[0]); ok && constant.BoolVal(is) == all {
					return f.suppose(known, side[1], value)
				}
			}
			return known, true
		}
	}
	if c, ok := compared(e); ok {
		return f.supposeCompared(known, c, value), true
	}
	name, of, ok := f.term(e)
	if !ok {
		return known, true
	}
	return f.with(known, name, constant.MakeBool(value), of), true
}

func (f *Function) supposeCompared(known facts, c comparison, value bool) facts {
	if value = value != c.not; value && c.op == token.EQL {
		for _, side := range [][2]ast.Expr{{c.x, c.y}, {c.y, c.x}} {
			is, ok := f.value(known, side[1])
			if name, of, isTerm := f.term(side[0]); ok && isTerm {
				return f.with(known, name, is, of)
			}
		}
	}
	if name, of, ok := f.comparisonTerm(c); ok {
		return f.with(known, name, constant.MakeBool(value), of)
	}
	return known
}

// with adds a fact, if a condition may ask for it.
func (f *Function) with(known facts, name string, value constant.Value, of []*types.Var) facts {
	if slices.ContainsFunc(of, func(v *types.Var) bool { return !f.asked[v] }) {
		return known
	}
	if known = maps.Clone(known); known == nil {
		known = facts{}
	}
	known[name] = fact{value, of}
	return known
}

// without drops what is known of a variable.
func (f *Function) without(known facts, v *types.Var) facts {
	of := func(_ string, is fact) bool { return slices.Contains(is.of, v) }
	for name, is := range known {
		if of(name, is) {
			known = maps.Clone(known)
			maps.DeleteFunc(known, of)
			break
		}
	}
	return known
}

// learn is what is known after n.
func (f *Function) learn(known facts, n ast.Node) facts {
	ast.Inspect(n, func(n ast.Node) bool {
		if ref, ok := n.(*ast.UnaryExpr); ok && ref.Op == token.AND {
			if _, root := variable(f.info, ref.X); root != nil {
				known = f.without(known, root)
			}
		}
		return true
	})
	to, from := targets(n), []ast.Expr(nil)
	zero := false
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
			from = n.Rhs
		}
	case *ast.ValueSpec:
		from, zero = n.Values, len(n.Values) == 0
	}
	type result struct {
		name  string
		value constant.Value
		of    []*types.Var
	}
	var results []result
	for i, one := range to {
		name, of, ok := f.term(one)
		if !ok {
			continue
		}
		switch v, is := f.zero(f.info.TypeOf(one)); {
		case zero && is:
			results = append(results, result{name, v, of})
		case len(from) == len(to):
			if v, is := f.value(known, from[i]); is {
				results = append(results, result{name, v, of})
			}
		}
	}
	for _, one := range to {
		if _, root := variable(f.info, one); root != nil {
			known = f.without(known, root)
		}
	}
	for _, r := range results {
		known = f.with(known, r.name, r.value, r.of)
	}
	return known
}

// zero is the value of a variable without one.
func (*Function) zero(t types.Type) (constant.Value, bool) {
	if _, generic := types.Unalias(t).(*types.TypeParam); t == nil || generic {
		return nil, false
	}
	switch t := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case t.Info()&types.IsBoolean != 0:
			return constant.MakeBool(false), true
		case t.Info()&types.IsString != 0:
			return constant.MakeString(""), true
		case t.Info()&types.IsNumeric != 0:
			return constant.MakeInt64(0), true
		}
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Signature, *types.Interface:
		return nil, true
	}
	return nil, false
}

// questions are the variables in conditions that may have been asked before: because there are
// two of them, or because the variable is given a value that is known.
func (f *Function) questions() map[*types.Var]bool {
	times := map[*types.Var]int{}
	in := func(all ...ast.Expr) {
		for _, e := range all {
			if e == nil {
				continue
			}
			ast.Inspect(e, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if v, ok := f.info.Uses[id].(*types.Var); ok {
						times[v]++
					}
				}
				return true
			})
		}
	}
	given := map[*types.Var]bool{}
	for result := range f.Sig.Results().Variables() {
		given[result] = true
	}
	f.Inspect(func(n ast.Node, _ []ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			in(n.Cond)
		case *ast.ForStmt:
			in(n.Cond)
		case *ast.SwitchStmt:
			for _, clause := range n.Body.List {
				c, _ := clause.(*ast.CaseClause)
				for _, e := range c.List {
					in(n.Tag, e)
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if _, known := f.constant(n.Rhs[min(i, len(n.Rhs)-1)]); known {
					if v, _ := variable(f.info, to); v != nil {
						given[v] = true
					}
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if v, ok := f.info.Defs[name].(*types.Var); ok {
					given[v] = true
				}
			}
		}
		return true
	})
	asked := map[*types.Var]bool{}
	for v, n := range times {
		asked[v] = n > 1 || given[v]
	}
	return asked
}
