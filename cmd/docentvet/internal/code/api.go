// Package code reads Go code as Docent's API means it: which values are holds, which
// calls take a lock, which functions run under one, and what may happen between two
// statements.
package code

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// Paths of the packages whose API the analyzers know.
const (
	Module    = "github.com/docent-go/docent/"
	Recipes   = Module + "recipes"
	Discovery = Module + "recipes/discovery"
	Fence     = Module + "fence"
	ZKConn    = Module + "client/zkconn"
)

// Holds are the types of package recipes that a program has to release.
var Holds = []string{"AnyHold", "Hold", "Lease", "MultiHold", "Term", "WriteHold"}

// Acquiring are the methods that return a hold which the caller has to release.
var Acquiring = []string{"Acquire", "Campaign", "Downgrade", "TryAcquire", "TryCampaign"}

// Releasing are the methods that end a hold. HandOver and Downgrade leave it as it was
// if they fail; what the caller does then is not followed.
var Releasing = []string{"Close", "Downgrade", "HandOver", "Release"}

// IsLibrary reports whether pkg is a package that Docent's users import. Its examples and
// commands are none: they are programs like any other.
func IsLibrary(pkg *types.Package) bool {
	if pkg == nil {
		return false
	}
	rest, ok := strings.CutPrefix(pkg.Path(), Module)
	room, _, _ := strings.Cut(rest, "/")
	return ok && slices.Contains([]string{"client", "fence", "observe", "recipes", "retry", "zktest"}, room)
}

// IsHold reports whether t is a hold of package recipes.
func IsHold(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return t.Obj().Pkg() != nil && t.Obj().Pkg().Path() == Recipes && slices.Contains(Holds, t.Obj().Name())
	case *types.TypeParam:
		return IsHold(t.Constraint())
	}
	return false
}

// IsShared reports whether t is a lock that several hold at once: a read lock or a semaphore.
func IsShared(t types.Type) bool {
	switch types.TypeString(types.Unalias(t), nil) {
	case "*" + Recipes + ".ReadLock", "*" + Recipes + ".InterProcessSemaphoreV2":
		return true
	}
	return false
}

// IsContext reports whether t is context.Context.
func IsContext(t types.Type) bool {
	if t == nil {
		return false
	}
	return types.TypeString(types.Unalias(t), nil) == "context.Context"
}

// Callee is the function or method that call calls, if it is known by name.
func Callee(info *types.Info, call *ast.CallExpr) *types.Func {
	f, _ := typeutil.Callee(info, call).(*types.Func)
	return f
}

// IsFunc reports whether f is one of the functions of a package, without a receiver.
func IsFunc(f *types.Func, pkg string, names ...string) bool {
	return f != nil && f.Pkg() != nil && f.Pkg().Path() == pkg && f.Signature().Recv() == nil && slices.Contains(names, f.Name())
}

// IsMethod reports whether f is one of the methods of a type of a package.
func IsMethod(f *types.Func, pkg string, names ...string) bool {
	return f != nil && f.Pkg() != nil && f.Pkg().Path() == pkg && f.Signature().Recv() != nil && slices.Contains(names, f.Name())
}

// Picks reports whether call returns a picked call of package discovery, and an error, to a
// caller who has to say how it has ended.
func Picks(info *types.Info, call *ast.CallExpr) bool {
	f := Callee(info, call)
	if f == nil || f.Signature().Recv() == nil || f.Name() != "Pick" {
		return false
	}
	results := f.Signature().Results()
	return results.Len() == 2 && types.TypeString(types.Unalias(results.At(0).Type()), nil) == "*"+Discovery+".Call"
}

// Acquires reports whether call returns a hold, and an error, to a caller who has to
// release it.
func Acquires(info *types.Info, call *ast.CallExpr) bool {
	f := Callee(info, call)
	if f == nil || f.Signature().Recv() == nil || !slices.Contains(Acquiring, f.Name()) {
		return false
	}
	results, ok := info.TypeOf(call.Fun).(*types.Signature)
	return ok && results.Results().Len() == 2 && IsHold(results.Results().At(0).Type())
}

// Under is a call that runs a function while a lock is held, such as a Do.
type Under struct {
	Call  *ast.CallExpr
	Outer ast.Expr     // the context that the call was given
	Body  *ast.FuncLit // the function
	Inner *ast.Ident   // its parameter that ends with the hold; nil if it has no name
	Lock  ast.Expr     // the lock that is taken; nil if none is, or it is not known
}

// RunsUnder reports whether call runs a function literal under a lock. It does if the
// literal has a context and a hold, or if package fence runs it.
func RunsUnder(info *types.Info, call *ast.CallExpr) (Under, bool) {
	u := Under{Call: call}
	if len(call.Args) < 2 || !IsContext(info.TypeOf(call.Args[0])) {
		return u, false
	}
	f := Callee(info, call)
	ofFence := IsFunc(f, Fence, "Do", "Tx", "Under") || IsMethod(f, Fence, "Do", "Tx")
	for _, arg := range call.Args[1:] {
		lit, ok := ast.Unparen(arg).(*ast.FuncLit)
		if !ok {
			continue
		}
		sig, ok := info.TypeOf(lit).(*types.Signature)
		if !ok || sig.Params().Len() == 0 || !IsContext(sig.Params().At(0).Type()) {
			continue
		}
		if !ofFence && (sig.Params().Len() < 2 || !IsHold(sig.Params().At(1).Type())) {
			continue
		}
		u.Body, u.Outer = lit, call.Args[0]
		if names := lit.Type.Params.List[0].Names; len(names) > 0 {
			u.Inner = names[0]
		}
		u.Lock = Taken(info, call)
		return u, true
	}
	return u, false
}

// Taken is the lock that call takes, for a while or for a function. It is nil if call takes none.
func Taken(info *types.Info, call *ast.CallExpr) ast.Expr {
	f := Callee(info, call)
	sel, _ := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	switch {
	case IsFunc(f, Fence, "Do", "Tx") && len(call.Args) > 1:
		return call.Args[1]
	case sel == nil:
		return nil
	case Acquires(info, call) && f.Name() != "Downgrade":
		return sel.X
	case IsMethod(f, Recipes, "Do", "Run", "TryDo"):
		return sel.X
	}
	return nil
}

// Same reports whether a and b are the same variable, or the same field or half of it:
// whether both are read from the same names.
func Same(info *types.Info, a, b ast.Expr) bool {
	a, b = ast.Unparen(a), ast.Unparen(b)
	switch a := a.(type) {
	case *ast.Ident:
		b, ok := b.(*ast.Ident)
		v, isVar := info.ObjectOf(a).(*types.Var)
		return ok && isVar && v == info.ObjectOf(b)
	case *ast.SelectorExpr:
		b, ok := b.(*ast.SelectorExpr)
		return ok && info.ObjectOf(a.Sel) == info.ObjectOf(b.Sel) && (isPackage(info, a.X) || Same(info, a.X, b.X))
	case *ast.CallExpr: // rw.ReadLock(), r.Context()
		b, ok := b.(*ast.CallExpr)
		return ok && len(a.Args) == 0 && len(b.Args) == 0 && Same(info, a.Fun, b.Fun)
	}
	return false
}

func isPackage(info *types.Info, e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = info.Uses[id].(*types.PkgName)
	return ok
}
