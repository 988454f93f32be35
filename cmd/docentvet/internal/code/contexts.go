package code

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Contexts are variables, fields and calls such as r.Context() that are one context, or
// come from it by functions such as context.WithTimeout.
type Contexts []ast.Expr

// Has reports whether e is one of the contexts.
func (c Contexts) Has(info *types.Info, e ast.Expr) bool {
	return slices.ContainsFunc(c, func(one ast.Expr) bool { return Same(info, one, e) })
}

// Without are the contexts without the variables that are given another value in a body.
func (c Contexts) Without(info *types.Info, body ast.Node) Contexts {
	return slices.DeleteFunc(c, func(one ast.Expr) bool {
		given := false
		ast.Inspect(body, func(n ast.Node) bool {
			s, ok := n.(*ast.AssignStmt)
			given = given || ok && slices.ContainsFunc(s.Lhs, func(to ast.Expr) bool { return Same(info, to, one) })
			return !given
		})
		return given
	})
}

// Related are the context that a call was given, and those that it comes from, or that come
// from it in the code of in before the position until.
func Related(info *types.Info, in ast.Node, given ast.Expr, until token.Pos) Contexts {
	all := Contexts(roots(info, given))
	for grown := true; grown; {
		grown = false
		ast.Inspect(in, func(n ast.Node) bool {
			s, ok := n.(*ast.AssignStmt)
			if !ok || len(s.Rhs) != 1 || n.Pos() >= until {
				return true
			}
			for _, to := range s.Lhs { // a group comes before its context, and a function to cancel behind
				if name, ok := to.(*ast.Ident); !ok || name.Name == "_" || !IsContext(info.TypeOf(to)) {
					continue
				}
				for _, from := range derived(info, s.Rhs[0]) {
					switch was, is := all.Has(info, from), all.Has(info, to); {
					case was && !is:
						all, grown = append(all, to), true
					case is && !was:
						all, grown = append(all, from), true
					}
				}
			}
			return true
		})
	}
	return all
}

// roots are the expressions that a context is read from.
func roots(info *types.Info, e ast.Expr) []ast.Expr {
	e = ast.Unparen(e)
	switch x := e.(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return []ast.Expr{e}
	case *ast.CallExpr:
		if from := derived(info, e); from != nil {
			return from
		}
		if isAccessor(info, x) {
			return []ast.Expr{e}
		}
	}
	return nil
}

// isAccessor reports whether call is r.Context() or the like. That of a hold ends with the
// hold, and that of a test ends with what the test started.
func isAccessor(info *types.Info, call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Context" || len(call.Args) != 0 || IsHold(info.TypeOf(sel.X)) {
		return false
	}
	return !strings.HasPrefix(strings.TrimPrefix(types.TypeString(info.TypeOf(sel.X), nil), "*"), "testing.")
}

// derived are the contexts that a call makes a context of.
func derived(info *types.Info, e ast.Expr) []ast.Expr {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	f := Callee(info, call)
	if !Derives(f) {
		return nil
	}
	return roots(info, call.Args[0])
}

// Derives reports whether f makes a context of another one, which ends with that.
func Derives(f *types.Func) bool {
	return IsFunc(f, "context", "WithCancel", "WithCancelCause", "WithDeadline", "WithDeadlineCause",
		"WithTimeout", "WithTimeoutCause", "WithValue") || IsFunc(f, "os/signal", "NotifyContext") ||
		IsFunc(f, "golang.org/x/sync/errgroup", "WithContext")
}

// GivesUp reports whether f is a method that gives up what it has, such as the hold of its value. That
// has to be done after a loss, too.
func GivesUp(f *types.Func) bool {
	return f.Signature().Recv() != nil && slices.Contains([]string{"Close", "Release", "Resign", "Rollback", "Shutdown", "Stop", "Unlock"}, f.Name())
}

// Observes reports whether f writes a log, or reads what a context carries. That is no work.
func Observes(f *types.Func) bool {
	if f.Pkg() != nil && slices.ContainsFunc([]string{
		"log/slog", "testing", "go.uber.org/zap", "github.com/rs/zerolog", "github.com/sirupsen/logrus", "github.com/go-logr/logr",
		"k8s.io/klog", "go.opentelemetry.io/otel", "runtime/trace", "runtime/pprof",
	}, func(path string) bool { return f.Pkg().Path() == path || strings.HasPrefix(f.Pkg().Path(), path+"/") }) {
		return true
	}
	if strings.HasSuffix(f.Name(), "FromContext") || strings.HasSuffix(f.Name(), "FromCtx") {
		return true
	}
	name := strings.ToLower(f.Name())
	for _, end := range []string{"context", "ctx", "f", "w", "ln"} {
		name = strings.TrimSuffix(name, end)
	}
	return slices.Contains([]string{"log", "logger", "print", "debug", "info", "notice", "warn", "warning", "error", "trace"}, name)
}
