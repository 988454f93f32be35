package zkerrorcompare

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/ssa"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// origin is a set of the places that an error may come from. nil comes from none.
type origin int

const (
	docent origin = 1 << iota // a call of Docent, whose errors wrap what they say
	other                     // something else, or something that is not followed
)

// wraps is the fact that a function of another package returns errors of Docent, and no others.
type wraps struct{ Results []int }

// AFact makes wraps a fact.
func (*wraps) AFact() {}

// String names the fact.
func (*wraps) String() string { return "wraps" }

// program is a package, and what happens to the errors in it.
type program struct {
	pass      *analysis.Pass // nil if all packages have code
	functions []*ssa.Function
	calls     map[*ssa.Function][]*ssa.CallCommon
	values    map[*ssa.Function]bool // functions that are used as values
	closures  map[*ssa.Function][]*ssa.MakeClosure
	invoked   map[string]bool // names of methods that are called by an interface
	cells     map[any]*cell   // of fields and variables of the package
	compares  map[token.Pos][]*ssa.BinOp
}

// cell is what is stored in a variable or a field.
type cell struct {
	stored []ssa.Value
	leaks  bool // its address goes where stores are not seen
}

// read builds the package of a pass.
func read(pass *analysis.Pass) *program {
	built := ssa.NewProgram(pass.Fset, 0)
	built.SetNoReturn(pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs).NoReturn) //nolint:forcetypeassert,errcheck // the analyzer requires it
	for _, imported := range pass.Pkg.Imports() {
		built.CreatePackage(imported, nil, nil, true)
	}
	pkg := built.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	pkg.Build()
	p := newProgram(pass)
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			if f := declared(pass, built, decl); f != nil {
				p.add(f)
			}
		}
	}
	p.add(pkg.Func("init"))
	return p
}

func newProgram(pass *analysis.Pass) *program {
	return &program{
		pass: pass, calls: map[*ssa.Function][]*ssa.CallCommon{}, values: map[*ssa.Function]bool{},
		closures: map[*ssa.Function][]*ssa.MakeClosure{}, invoked: map[string]bool{}, cells: map[any]*cell{},
		compares: map[token.Pos][]*ssa.BinOp{},
	}
}

// add reads a function and those in it.
func (p *program) add(f *ssa.Function) {
	p.functions = append(p.functions, f)
	for _, b := range f.Blocks {
		for _, instr := range b.Instrs {
			p.instruction(instr)
		}
	}
	for _, inner := range f.AnonFuncs {
		p.add(inner)
	}
}

func (p *program) instruction(instr ssa.Instruction) {
	var callee ssa.Value
	if call, ok := instr.(ssa.CallInstruction); ok {
		common := call.Common()
		if common.IsInvoke() {
			p.invoked[common.Method.Name()] = true
		} else if f := common.StaticCallee(); f != nil {
			callee = common.Value
			p.calls[generic(f)] = append(p.calls[generic(f)], common)
		}
	}
	for _, operand := range instr.Operands(nil) {
		if f, ok := (*operand).(*ssa.Function); ok && *operand != callee {
			p.values[generic(f)] = true
		}
		if g, ok := (*operand).(*ssa.Global); ok {
			p.use(g, instr, p.cell(g))
		}
	}
	switch instr := instr.(type) {
	case *ssa.MakeClosure:
		f := instr.Fn.(*ssa.Function) //nolint:forcetypeassert,errcheck // documented
		p.closures[f] = append(p.closures[f], instr)
		p.values[f] = slices.ContainsFunc(*instr.Referrers(), func(r ssa.Instruction) bool {
			call, ok := r.(ssa.CallInstruction)
			return !ok || call.Common().Value != instr || slices.Contains(call.Common().Args, ssa.Value(instr))
		})
	case *ssa.FieldAddr:
		at := p.cell(field(instr.X.Type(), instr.Field))
		for _, r := range *instr.Referrers() {
			p.use(instr, r, at)
		}
	case *ssa.BinOp:
		if instr.Op == token.EQL || instr.Op == token.NEQ {
			p.compares[instr.Pos()] = append(p.compares[instr.Pos()], instr)
		}
	}
}

func (p *program) cell(of any) *cell {
	if p.cells[of] == nil {
		p.cells[of] = &cell{}
	}
	return p.cells[of]
}

// use notes what an instruction does with an address.
func (p *program) use(addr ssa.Value, by ssa.Instruction, at *cell) {
	switch by := by.(type) {
	case *ssa.Store:
		if by.Addr == addr {
			at.stored = append(at.stored, by.Val)
		}
		at.leaks = at.leaks || by.Val == addr
	case *ssa.UnOp, *ssa.DebugRef:
	case *ssa.MakeClosure:
		f := by.Fn.(*ssa.Function) //nolint:forcetypeassert,errcheck // documented
		for i, bound := range by.Bindings {
			if bound == addr {
				p.uses(f.FreeVars[i], at)
			}
		}
	default:
		at.leaks = true
	}
}

// uses notes what is done with the address of a local variable.
func (p *program) uses(addr ssa.Value, at *cell) {
	for _, r := range *addr.Referrers() {
		p.use(addr, r, at)
	}
}

// field is the i-th field of a struct, or of what a pointer points to.
func field(t types.Type, i int) *types.Var {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if param, ok := types.Unalias(t).(*types.TypeParam); ok {
		t = param.Constraint()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	return s.Field(i).Origin()
}

// generic is the function that f is an instance of, or f.
func generic(f *ssa.Function) *ssa.Function {
	if of := f.Origin(); of != nil {
		return of
	}
	return f
}

// tracing follows one error back to where it comes from.
type tracing struct {
	*program
	seen map[any]bool
	from origin
	// The calls that wrap errors and are being followed.
	wrapping map[*ssa.CallCommon]bool
}

// origin is where any of some values comes from.
func (p *program) origin(values ...ssa.Value) origin {
	t := p.trace()
	t.all(values)
	return t.from
}

func (p *program) trace() *tracing {
	return &tracing{program: p, seen: map[any]bool{}, wrapping: map[*ssa.CallCommon]bool{}}
}

func (t *tracing) all(values []ssa.Value) {
	for _, v := range values {
		t.value(v)
	}
}

func (t *tracing) once(what any) bool {
	first := !t.seen[what]
	t.seen[what] = true
	return first
}

func (t *tracing) value(v ssa.Value) {
	if t.from&other != 0 || !t.once(v) {
		return
	}
	switch v := v.(type) {
	case *ssa.Const:
		if !v.IsNil() {
			t.from |= other
		}
	case *ssa.Phi:
		t.all(v.Edges)
	case *ssa.ChangeInterface:
		t.value(v.X)
	case *ssa.MakeInterface:
		t.concrete(v.X.Type())
	case *ssa.TypeAssert:
		t.value(v.X)
	case *ssa.Call:
		t.call(v.Common(), 0)
	case *ssa.Extract:
		if call, ok := v.Tuple.(*ssa.Call); ok {
			t.call(call.Common(), v.Index)
			return
		}
		t.from |= other
	case *ssa.Field:
		t.field(field(v.X.Type(), v.Field))
	case *ssa.UnOp:
		if v.Op == token.MUL {
			t.load(v.X)
			return
		}
		t.from |= other
	case *ssa.FreeVar:
		t.bound(v, t.value)
	case *ssa.Parameter:
		t.parameter(v)
	default:
		t.from |= other
	}
}

// concrete follows an error of a type that is known.
func (t *tracing) concrete(is types.Type) {
	if ptr, ok := is.(*types.Pointer); ok {
		is = ptr.Elem()
	}
	if named, ok := types.Unalias(is).(*types.Named); ok && code.IsLibrary(named.Obj().Pkg()) {
		t.from |= docent
		return
	}
	t.from |= other
}

// load follows what is read from an address.
func (t *tracing) load(addr ssa.Value) {
	switch addr := addr.(type) {
	case *ssa.Alloc:
		if t.once(cellOf{addr}) {
			at := &cell{}
			t.uses(addr, at)
			t.cell(at)
		}
	case *ssa.FreeVar:
		t.bound(addr, t.load)
	case *ssa.FieldAddr:
		t.field(field(addr.X.Type(), addr.Field))
	case *ssa.Global:
		if o := addr.Object(); o == nil || o.Exported() || !t.own(o.Pkg()) {
			t.from |= other
			return
		}
		t.cell(t.program.cell(addr))
	default:
		t.from |= other
	}
}

// cellOf is the content of a variable, beside its address.
type cellOf struct{ *ssa.Alloc }

func (t *tracing) cell(at *cell) {
	if at.leaks {
		t.from |= other
		return
	}
	t.all(at.stored)
}

// own reports whether all that is stored in what is not exported of pkg is seen.
func (t *tracing) own(pkg *types.Package) bool {
	return t.pass != nil && pkg == t.pass.Pkg
}

func (t *tracing) field(f *types.Var) {
	if f == nil || f.Exported() || !t.own(f.Pkg()) {
		t.from |= other
		return
	}
	if t.once(f) {
		t.cell(t.program.cell(f))
	}
}

// bound follows the variable of the function around that a literal uses.
func (t *tracing) bound(v *ssa.FreeVar, follow func(ssa.Value)) {
	i := slices.Index(v.Parent().FreeVars, v)
	made := t.closures[v.Parent()]
	if len(made) == 0 {
		t.from |= other
	}
	for _, c := range made {
		follow(c.Bindings[i])
	}
}

// parameter follows what the callers of a function give to it, if all of them are seen.
func (t *tracing) parameter(v *ssa.Parameter) {
	f := generic(v.Parent())
	if strings.HasPrefix(f.Synthetic, "range-over-func") {
		t.yielded(f)
		return
	}
	if o := f.Object(); o != nil && (o.Exported() || !t.own(o.Pkg()) || f.Signature.Recv() != nil && t.invoked[o.Name()]) {
		t.from |= other
		return
	}
	i := slices.Index(f.Params, v)
	if t.values[f] || len(t.calls[f]) == 0 || i < 0 {
		t.from |= other
		return
	}
	for _, call := range t.calls[f] {
		t.value(call.Args[i])
	}
}

// yielded follows what an iterator gives to the body of a loop.
func (t *tracing) yielded(body *ssa.Function) {
	for _, made := range t.closures[body] {
		for _, r := range *made.Referrers() {
			call, ok := r.(*ssa.Call)
			if !ok || call.Common().IsInvoke() {
				t.from |= other
				return
			}
			from, ok := call.Common().Value.(*ssa.Call)
			if !ok || !isDocents(called(from.Common())) {
				t.from |= other
				return
			}
			t.from |= docent
		}
	}
	if len(t.closures[body]) == 0 {
		t.from |= other
	}
}

// called is the function or method that a call calls, if that is known.
func called(c *ssa.CallCommon) *types.Func {
	if c.IsInvoke() {
		return c.Method
	}
	f := c.StaticCallee()
	if f == nil {
		return nil
	}
	o, _ := generic(f).Object().(*types.Func)
	return o
}

// isDocents reports whether the errors that f returns are made by Docent.
func isDocents(f *types.Func) bool {
	if f == nil || !code.IsLibrary(f.Pkg()) || f.Pkg().Path() == code.ZKConn {
		return false
	}
	recv := f.Signature().Recv()
	if recv == nil || !types.IsInterface(recv.Type()) {
		return true
	}
	all := recv.Type().Underlying().(*types.Interface) //nolint:forcetypeassert,errcheck // as it was asked
	for m := range all.Methods() {
		if !m.Exported() {
			return true // nobody else has such a method
		}
	}
	return false
}

// call follows the i-th result of a call.
func (t *tracing) call(c *ssa.CallCommon, i int) {
	type result struct {
		call *ssa.CallCommon
		i    int
	}
	if !t.once(result{c, i}) {
		return
	}
	f := called(c)
	switch {
	case t.pass != nil && isDocents(f):
		t.from |= docent
		t.passedOn(c)
	case code.IsFunc(f, "fmt", "Errorf"), code.IsFunc(f, "errors", "Join"):
		t.wrapped(c)
	case code.IsFunc(f, "cmp", "Or"):
		if given, ok := variadic(c); ok {
			t.all(given)
			return
		}
		t.from |= other
	default:
		t.returned(c, f, i)
	}
}

// returned follows the i-th result of a function with code, or of one that has a fact.
func (t *tracing) returned(c *ssa.CallCommon, f *types.Func, i int) {
	callee := c.StaticCallee()
	if callee == nil {
		t.from |= other
		return
	}
	if callee = generic(callee); len(callee.Blocks) > 0 {
		t.results(callee, i)
		return
	}
	var known wraps
	if t.pass != nil && f != nil && t.pass.ImportObjectFact(f.Origin(), &known) && slices.Contains(known.Results, i) {
		t.from |= docent
		return
	}
	t.from |= other
}

// results follows what a function returns.
func (t *tracing) results(f *ssa.Function, i int) {
	for _, b := range f.Blocks {
		if ret, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok {
			t.value(ret.Results[i])
		}
	}
}

// passedOn follows errors that a function of Docent may hand on as they are: those that
// it is given, and those of a function that it calls.
func (t *tracing) passedOn(c *ssa.CallCommon) {
	for _, arg := range c.Args {
		sig, ok := arg.Type().Underlying().(*types.Signature)
		switch {
		case isError(arg.Type()):
			t.value(arg)
		case !ok || sig.Results().Len() == 0 || !isError(sig.Results().At(sig.Results().Len()-1).Type()):
		default:
			f := function(arg)
			if f == nil || len(f.Blocks) == 0 {
				t.from |= other
				return
			}
			if t.once(f) {
				t.results(f, sig.Results().Len()-1)
			}
		}
	}
}

// function is the function that a value is, if that is known.
func function(v ssa.Value) *ssa.Function {
	switch v := v.(type) {
	case *ssa.Function:
		return generic(v)
	case *ssa.MakeClosure:
		f, _ := v.Fn.(*ssa.Function)
		return f
	case *ssa.ChangeType:
		return function(v.X)
	}
	return nil
}

// wrapped follows the errors that fmt.Errorf or errors.Join wraps. One of Docent is enough: the
// new error is equal to none of them.
func (t *tracing) wrapped(c *ssa.CallCommon) {
	given, ok := variadic(c)
	if format, isConst := c.Args[0].(*ssa.Const); isConst && format.Value != nil && format.Value.Kind() == constant.String {
		ok = ok && strings.Contains(constant.StringVal(format.Value), "%w")
	}
	if t.wrapping[c] {
		return
	}
	t.wrapping[c] = true
	defer delete(t.wrapping, c)
	if ok {
		for _, one := range given {
			in := &tracing{program: t.program, seen: map[any]bool{}, wrapping: t.wrapping}
			if in.value(one); in.from == docent {
				t.from |= docent
				return
			}
		}
	}
	t.from |= other
}

// variadic are the last arguments of a call, if they are given one by one.
func variadic(c *ssa.CallCommon) ([]ssa.Value, bool) {
	slice, ok := c.Args[len(c.Args)-1].(*ssa.Slice)
	if !ok {
		return nil, false
	}
	array, ok := slice.X.(*ssa.Alloc)
	if !ok {
		return nil, false
	}
	var all []ssa.Value
	for _, r := range *array.Referrers() {
		at, ok := r.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, r := range *at.Referrers() {
			if store, ok := r.(*ssa.Store); ok {
				all = append(all, store.Val)
			}
		}
	}
	return all, true
}
