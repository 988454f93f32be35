package code

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/cfg"
)

// Function is one function of the package that a pass looks at, or one literal in it.
type Function struct {
	Node ast.Node // *ast.FuncDecl or *ast.FuncLit
	Type *ast.FuncType
	Body *ast.BlockStmt
	Sig  *types.Signature

	info     *types.Info
	pkg      *types.Package
	assigned assigned
	asked    map[*types.Var]bool
	own      map[*types.Var]bool // what Declares has said
	graph    *cfg.CFG
	switches map[*ast.CaseClause]ast.Stmt
	comms    map[ast.Node]bool // the statements behind case of a select
}

// Functions are all functions and function literals that have a body. The analyzer of the
// pass requires ctrlflow.
func Functions(pass *analysis.Pass) []*Function {
	cfgs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs) //nolint:forcetypeassert,errcheck // the analyzer requires it
	var all []*Function
	assigned := assignments(pass)
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			f := &Function{Node: n, info: pass.TypesInfo, pkg: pass.Pkg, assigned: assigned}
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body == nil {
					return true
				}
				f.Type, f.Body, f.graph = n.Type, n.Body, cfgs.FuncDecl(n)
				f.Sig, _ = pass.TypesInfo.Defs[n.Name].Type().(*types.Signature)
			case *ast.FuncLit:
				f.Type, f.Body, f.graph = n.Type, n.Body, cfgs.FuncLit(n)
				f.Sig, _ = pass.TypesInfo.TypeOf(n).(*types.Signature)
			default:
				return true
			}
			if f.graph != nil && f.Sig != nil {
				all = append(all, f)
			}
			return true
		})
	}
	return all
}

// Inspect visits the nodes of the function, and not those of the literals in it.
func (f *Function) Inspect(visit func(n ast.Node, stack []ast.Node) bool) {
	ast.PreorderStack(f.Body, nil, func(n ast.Node, stack []ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		return visit(n, stack)
	})
}

// Declares reports whether v is a variable of the function itself: neither of one around it
// nor of the package.
func (f *Function) Declares(v *types.Var) bool {
	if v.Pos() < f.Node.Pos() || v.Pos() >= f.Node.End() {
		return false
	}
	if own, known := f.own[v]; known {
		return own
	}
	inner := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok {
			inner = inner || lit.Pos() <= v.Pos() && v.Pos() < lit.End()
			return false
		}
		return true
	})
	if f.own == nil {
		f.own = map[*types.Var]bool{}
	}
	f.own[v] = !inner
	return !inner
}

// Given is the statement that gives the results of a call to variables.
type Given struct {
	Stmt   ast.Node   // *ast.AssignStmt or *ast.ValueSpec
	Name   *ast.Ident // of the first result
	Value  *types.Var // the first result; nil if it is dropped, or kept in no variable
	Failed ast.Expr   // the variable or field that gets the error; nil if it is dropped
}

// Gives finds the statement above call, the last of the stack, if that is the call alone.
func (f *Function) Gives(call *ast.CallExpr, stack []ast.Node) (g Given, ok bool) {
	if len(stack) == 0 {
		return g, false
	}
	var names []ast.Expr
	switch s := stack[len(stack)-1].(type) {
	case *ast.AssignStmt:
		if len(s.Rhs) != 1 {
			return g, false
		}
		g.Stmt, names = s, s.Lhs
	case *ast.ValueSpec:
		if len(s.Values) != 1 {
			return g, false
		}
		g.Stmt = s
		for _, name := range s.Names {
			names = append(names, name)
		}
	default:
		return g, false
	}
	if len(names) != 2 || call == nil {
		return g, false
	}
	g.Name, _ = names[0].(*ast.Ident)
	if g.Name != nil {
		g.Value, _ = f.info.ObjectOf(g.Name).(*types.Var)
	}
	if id, isName := names[1].(*ast.Ident); !isName || id.Name != "_" {
		g.Failed = names[1]
	}
	return g, true
}

// After visits what may run after the statement or call at start, in the order of each
// path. If g is given, it leaves out the paths on which its call has failed. A path
// ends where visit returns false. After returns the first return that a path reached.
func (f *Function) After(start ast.Node, g Given, visit func(n ast.Node) bool) *ast.ReturnStmt {
	f.prepare()
	for _, b := range f.graph.Blocks {
		for i, n := range b.Nodes {
			if n.Pos() <= start.Pos() && start.Pos() < n.End() && b.Live {
				w := walk{f: f, given: g, visit: visit, seen: map[state]bool{}}
				for _, known := range f.before(n) {
					w.block(b, b.Nodes[i+1:], g.Failed != nil, f.learn(known, n))
				}
				return w.end
			}
		}
	}
	return nil
}

// before is what the paths know that come to a node.
func (f *Function) before(at ast.Node) (all []facts) {
	w := walk{f: f, visit: func(ast.Node) bool { return true }, seen: map[state]bool{}, meet: func(n ast.Node, known facts) {
		if n == at {
			all = append(all, known)
		}
	}}
	w.begin()
	return all
}

// All visits what may run from the beginning of the function, as After.
func (f *Function) All(g Given, visit func(n ast.Node) bool) {
	f.prepare()
	w := walk{f: f, given: g, visit: visit, seen: map[state]bool{}}
	w.begin()
}

func (f *Function) prepare() {
	if f.switches != nil {
		return
	}
	f.asked = f.questions()
	f.switches, f.comms = map[*ast.CaseClause]ast.Stmt{}, map[ast.Node]bool{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch s := n.(type) {
		case *ast.SwitchStmt:
			body = s.Body
		case *ast.TypeSwitchStmt:
			body = s.Body
		case *ast.CommClause:
			f.comms[s.Comm] = s.Comm != nil
			return true
		default:
			return true
		}
		for _, clause := range body.List {
			if c, ok := clause.(*ast.CaseClause); ok {
				f.switches[c], _ = n.(ast.Stmt)
			}
		}
		return true
	})
}

// state is a place of a walk: a block, whether the error variable still has the call's error,
// and what else is known.
type state struct {
	block *cfg.Block
	knows bool
	facts string
}

// most is how many states a walk has at most. What is beyond is not visited.
const most = 10_000

type walk struct {
	f     *Function
	given Given
	visit func(ast.Node) bool
	meet  func(ast.Node, facts)
	seen  map[state]bool
	end   *ast.ReturnStmt
}

// begin walks from the beginning of the function.
func (w *walk) begin() {
	var known facts
	for result := range w.f.Sig.Results().Variables() {
		if v, ok := w.f.zero(result.Type()); ok && result.Name() != "" && w.f.settled(result) {
			known = w.f.with(known, fmt.Sprint(result.Name(), result.Pos()), v, []*types.Var{result})
		}
	}
	w.enter(w.f.graph.Blocks[0], false, known)
}

func (w *walk) enter(b *cfg.Block, knows bool, known facts) {
	if at := (state{b, knows, known.String()}); !w.seen[at] && len(w.seen) < most {
		w.seen[at] = true
		if first := enters(b); first != nil {
			if !w.visit(first) {
				return
			}
			knows, known = knows && !w.replaces(first), w.f.learn(known, first)
		}
		w.block(b, b.Nodes, knows, known)
	}
}

// enters is what is done before the nodes of a block: the send or receive of a case, or
// the assignment of a range statement.
func enters(b *cfg.Block) ast.Node {
	switch s := b.Stmt.(type) {
	case *ast.CommClause:
		if b.Kind == cfg.KindSelectCaseBody && s.Comm != nil {
			return s.Comm
		}
	case *ast.RangeStmt:
		if b.Kind != cfg.KindRangeBody || s.Key == nil {
			return nil
		}
		given := &ast.AssignStmt{Lhs: []ast.Expr{s.Key}, TokPos: s.TokPos, Tok: s.Tok, Rhs: []ast.Expr{&ast.BadExpr{From: s.TokPos, To: s.TokPos}}}
		if s.Value != nil {
			given.Lhs = append(given.Lhs, s.Value)
		}
		return given
	}
	return nil
}

func (w *walk) block(b *cfg.Block, rest []ast.Node, knows bool, known facts) {
	for _, n := range rest {
		if w.f.comms[n] {
			continue // it is only one of those that a select waits for
		}
		if w.meet != nil {
			w.meet(n, known)
		}
		if !w.visit(n) {
			return
		}
		knows, known = knows && !w.replaces(n), w.f.learn(known, n)
	}
	if end := b.Return(); end != nil && w.end == nil {
		w.end = end
	}
	for i, next := range b.Succs {
		with := known
		if len(b.Succs) == 2 {
			var possible bool
			if with, possible = w.takes(b, known, i == 0); !possible || w.fails(b, knows, i == 0) {
				continue
			}
		}
		w.enter(next, knows, with)
	}
}

// takes adds to what is known that the block's condition has this value, if that is possible.
func (w *walk) takes(b *cfg.Block, known facts, value bool) (with facts, possible bool) {
	tag, cond, ok := w.condition(b)
	switch {
	case !ok:
		return known, true
	case tag == nil:
		return w.f.suppose(known, cond, value)
	}
	c := comparison{token.EQL, tag, cond, false}
	if is, ok := w.f.compare(known, c); ok {
		return known, is == value
	}
	return w.f.supposeCompared(known, c, value), true
}

// condition is what decides where a block goes on: an expression, or whether it is equal to the tag of
// a switch.
func (w *walk) condition(b *cfg.Block) (tag, cond ast.Expr, ok bool) {
	if clause, is := b.Succs[0].Stmt.(*ast.CaseClause); is && b.Succs[0].Kind == cfg.KindSwitchCaseBody {
		s, is := w.f.switches[clause].(*ast.SwitchStmt)
		if !is {
			return nil, nil, false
		}
		tag = s.Tag
	}
	if len(b.Nodes) == 0 {
		return nil, nil, false
	}
	cond, ok = b.Nodes[len(b.Nodes)-1].(ast.Expr)
	return tag, cond, ok
}

// replaces reports whether n gives the error variable a value that does not come from itself.
func (w *walk) replaces(n ast.Node) bool {
	s, ok := n.(*ast.AssignStmt)
	if !ok {
		return false
	}
	for i, name := range s.Lhs {
		if !Same(w.f.info, name, w.given.Failed) {
			continue
		}
		from := s.Rhs[0]
		if len(s.Rhs) == len(s.Lhs) {
			from = s.Rhs[i]
		}
		return !w.mentions(from)
	}
	return false
}

// fails reports whether the call has failed where the block's condition has this value. It
// may be so, if the condition asks the error something that is not known here. knows says
// that the variable still has the error of the call.
func (w *walk) fails(b *cfg.Block, knows, value bool) bool {
	q := question{w, knows, 0}
	if clause, ok := b.Succs[0].Stmt.(*ast.CaseClause); ok && b.Succs[0].Kind == cfg.KindSwitchCaseBody {
		if s, ok := w.f.switches[clause].(*ast.TypeSwitchStmt); ok { // whose blocks have no conditions
			return q.is(asserted(s)) && value != slices.ContainsFunc(clause.List, w.isNil)
		}
	}
	tag, cond, ok := w.condition(b)
	switch {
	case !ok:
		return false
	case tag != nil:
		return q.compared(tag, cond, value)
	}
	return q.implied(cond, value)
}

// asserted is the x of a switch x.(type).
func asserted(s *ast.TypeSwitchStmt) ast.Expr {
	var e ast.Expr
	switch assign := s.Assign.(type) {
	case *ast.AssignStmt:
		e = assign.Rhs[0]
	case *ast.ExprStmt:
		e = assign.X
	}
	if a, ok := ast.Unparen(e).(*ast.TypeAssertExpr); ok {
		return a.X
	}
	return e
}

// question is what the condition of a block says of the call.
type question struct {
	*walk
	knows bool
	depth int
}

// implied reports whether the call has failed, or may have, if cond has this value.
func (q question) implied(cond ast.Expr, value bool) bool {
	if q.depth++; q.depth > 8 {
		return false
	}
	switch c := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		return c.Op == token.NOT && q.implied(c.X, !value)
	case *ast.BinaryExpr:
		switch c.Op {
		case token.LAND, token.LOR:
			x, y := q.implied(c.X, value), q.implied(c.Y, value)
			if value == (c.Op == token.LAND) { // both have this value
				return x || y
			}
			return x && y
		case token.EQL:
			return q.compared(c.X, c.Y, value)
		case token.NEQ:
			return q.compared(c.X, c.Y, !value)
		}
		return q.asks(c)
	case *ast.CallExpr:
		return q.answered(c, value)
	case *ast.Ident:
		from := q.f.definitions(c)
		if len(from) == 1 {
			if a, ok := ast.Unparen(from[0]).(*ast.TypeAssertExpr); ok && q.is(a.X) { // ok of busy, ok := err.(*BusyError)
				return value
			}
			return q.implied(from[0], value)
		}
		return slices.ContainsFunc(from, q.asks)
	}
	return q.asks(cond)
}

// answered is implied for a call. errors.Is(err, ...) and the like are true of an error only, and
// NoError(err) of none.
func (q question) answered(c *ast.CallExpr, value bool) bool {
	if !slices.ContainsFunc(c.Args, q.is) {
		return q.asks(c)
	}
	f := Callee(q.f.info, c)
	if f == nil {
		return q.knows
	}
	name := strings.ToLower(f.Name())
	contains := func(s string) bool { return strings.Contains(name, s) }
	switch {
	case strings.HasPrefix(name, "ok"), strings.HasSuffix(name, "ok"), slices.ContainsFunc([]string{"noerr", "nil", "succe"}, contains):
		return !value
	case slices.ContainsFunc([]string{"fine", "good", "clean", "free", "held", "won", "acquired", "granted"}, contains):
	case IsFunc(f, "errors", "As", "AsType", "Is"), strings.HasPrefix(name, "is"), slices.ContainsFunc([]string{"err", "fail", "busy", "lost"}, contains):
		return value
	}
	return q.knows
}

// asks reports whether e has to do with the error, in a way that is not known here.
func (q question) asks(e ast.Expr) bool { return q.knows && q.mentions(e) }

// compared reports whether the call has failed, or may have, if x == y is equal.
func (q question) compared(x, y ast.Expr, equal bool) bool {
	if q.isNil(x) || q.is(y) {
		x, y = y, x
	}
	switch {
	case q.is(x):
		return equal != q.isNil(y) // err == nil is success, err == another is none
	case q.isValue(x) && q.isNil(y):
		return equal
	}
	for _, e := range []ast.Expr{x, y} {
		if v := q.f.info.Types[e].Value; v != nil && v.Kind() == constant.Bool {
			return q.implied(other(e, x, y), equal == constant.BoolVal(v))
		}
	}
	return q.asks(x) || q.asks(y)
}

func other(e, x, y ast.Expr) ast.Expr {
	if e == x {
		return y
	}
	return x
}

// is reports whether e is the error of the call, or an error that is made of it.
func (q question) is(e ast.Expr) bool {
	if !q.knows {
		return false
	}
	e = ast.Unparen(e)
	if Same(q.f.info, e, q.given.Failed) {
		return true
	}
	if q.depth++; q.depth > 8 || !isError(q.f.info.TypeOf(e)) {
		return false
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		return slices.ContainsFunc(e.Args, q.is)
	case *ast.Ident:
		from := q.f.definitions(e)
		return len(from) == 1 && q.is(from[0])
	}
	return false
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

func (w *walk) isValue(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && w.given.Value != nil && w.f.info.ObjectOf(id) == w.given.Value
}

func (w *walk) isNil(e ast.Expr) bool { return w.f.info.Types[e].IsNil() }

// mentions reports whether the error is named in e.
func (w *walk) mentions(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		found = found || ok && w.given.Failed != nil && Same(w.f.info, e, w.given.Failed)
		return !found
	})
	return found
}

// definitions are what is given to a variable.
func (f *Function) definitions(name *ast.Ident) []ast.Expr {
	v, ok := f.info.Uses[name].(*types.Var)
	if !ok {
		return nil
	}
	var all []ast.Expr
	ast.Inspect(f.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, lhs := range s.Lhs {
			if id, ok := lhs.(*ast.Ident); ok && f.info.ObjectOf(id) == v {
				all = append(all, s.Rhs[min(i, len(s.Rhs)-1)])
			}
		}
		return true
	})
	return all
}
