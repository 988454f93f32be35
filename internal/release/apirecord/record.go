package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/constant"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/internal/release/published"
)

// listed is what `go list` says of a package.
type listed struct {
	ImportPath, Name, Export string
	DepOnly                  bool
}

// records returns the record of each public package of the module in dir, by its path without
// that of the library.
func records(dir string) (map[string][]string, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Export,DepOnly", "./...")
	list.Dir = dir
	// One platform, or the record would depend on the machine.
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, problems.String())
	}
	exports, own := map[string]string{}, []listed{}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && public(p) {
			own = append(own, p)
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	all := map[string][]string{}
	for _, p := range own {
		pkg, err := from.Import(p.ImportPath)
		if err != nil {
			return nil, err
		}
		if lines := record(pkg); len(lines) > 0 {
			all[strings.TrimPrefix(p.ImportPath, published.Root+"/")] = lines
		}
	}
	return all, nil
}

// public reports whether others may import the package, and are promised something.
func public(p listed) bool {
	slashed := p.ImportPath + "/"
	return p.Name != "main" && !strings.Contains(slashed, "/internal/") && !strings.HasPrefix(slashed, published.Root+"/docs/")
}

// record returns a line for each exported name of a package, sorted.
func record(pkg *types.Package) []string {
	w := writer{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch o := object.(type) {
		case *types.Const:
			w.add("const %s %s = %s", name, w.typ(o.Type()), exact(o.Val()))
		case *types.Var:
			w.add("var %s %s", name, w.typ(o.Type()))
		case *types.Func:
			w.add("func %s%s", name, w.signature(o.Signature()))
		case *types.TypeName:
			w.typeName(o)
		}
	}
	slices.Sort(w.lines)
	return slices.Compact(w.lines)
}

func exact(v constant.Value) string {
	if v.Kind() == constant.Float {
		f, _ := constant.Float64Val(v)
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return v.ExactString()
}

// writer collects the lines of one package.
type writer struct {
	pkg   *types.Package
	lines []string
}

func (w *writer) add(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// typeName writes a type, its fields and its methods. An alias has those of a type that has no
// other public name.
func (w *writer) typeName(o *types.TypeName) {
	name := o.Name()
	named, isNamed := types.Unalias(o.Type()).(*types.Named)
	if o.IsAlias() {
		if alias, is := o.Type().(*types.Alias); is {
			w.add("type %s%s = %s", name, w.parameters(alias.TypeParams()), w.typ(alias.Rhs()))
		} else {
			w.add("type %s = %s", name, w.typ(o.Type()))
		}
		if !isNamed || !hidden(named.Obj()) {
			return
		}
	}
	head := "type " + name + w.parameters(named.TypeParams()) + " "
	switch under := named.Underlying().(type) {
	case *types.Struct:
		w.add("%sstruct", head)
		w.fields(name, under)
	case *types.Interface:
		w.add("%s%s", head, w.iface(under))
		for m := range under.Methods() {
			if m.Exported() {
				w.add("method %s.%s%s", name, m.Name(), w.signature(m.Signature()))
			}
		}
		return
	default:
		w.add("%s%s", head, w.typ(under))
	}
	w.methods(name, named)
}

// hidden reports whether a type has no name by which others can call it.
func hidden(o *types.TypeName) bool {
	return o.Pkg() != nil && (!o.Exported() || strings.Contains(o.Pkg().Path()+"/", "/internal/"))
}

// iface is an interface without the signatures of its methods. Where others can implement it, a
// new method breaks them, so the methods are named.
func (w *writer) iface(i *types.Interface) string {
	if !i.IsMethodSet() {
		return types.TypeString(i, w.qualified)
	}
	var names []string
	for m := range i.Methods() {
		if !m.Exported() {
			return "interface { unexported methods }"
		}
		names = append(names, m.Name())
	}
	slices.Sort(names)
	return "interface { " + strings.Join(names, ", ") + " }"
}

// fields writes the exported fields, and those that an embedded struct without a public name lends.
func (w *writer) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case f.Exported() && f.Embedded():
			w.add("field %s.%s %s embedded", name, f.Name(), w.typ(f.Type()))
		case f.Exported():
			w.add("field %s.%s %s", name, f.Name(), w.typ(f.Type()))
		case f.Embedded():
			t := f.Type()
			if p, is := t.Underlying().(*types.Pointer); is {
				t = p.Elem()
			}
			if lent, is := t.Underlying().(*types.Struct); is {
				w.fields(name, lent)
			}
		}
	}
}

// methods writes the exported methods, without those of exported embedded fields.
func (w *writer) methods(name string, named *types.Named) {
	values := types.NewMethodSet(named)
	for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if !sel.Obj().Exported() || lent(named, sel.Index()) {
			continue
		}
		pointer := "*"
		if values.Lookup(nil, sel.Obj().Name()) != nil {
			pointer = ""
		}
		signature, _ := sel.Type().(*types.Signature)
		w.add("method %s%s.%s%s", pointer, name, sel.Obj().Name(), w.signature(signature))
	}
}

// lent reports whether a selection goes through exported embedded fields alone.
func lent(t types.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if p, is := t.Underlying().(*types.Pointer); is {
			t = p.Elem()
		}
		s, is := t.Underlying().(*types.Struct)
		if !is || !s.Field(i).Exported() {
			return false
		}
		t = s.Field(i).Type()
	}
	return len(index) > 1
}

// qualified is the name of a package in a line: none for its own, a short one for this repository's.
func (w *writer) qualified(pkg *types.Package) string {
	if pkg == w.pkg {
		return ""
	}
	return strings.TrimPrefix(pkg.Path(), published.Root+"/")
}

// parameters are those of a generic type or function.
func (w *writer) parameters(list *types.TypeParamList) string {
	var all []string
	for p := range list.TypeParams() {
		all = append(all, p.Obj().Name()+" "+w.typ(p.Constraint()))
	}
	if all == nil {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// signature writes a function without the names of its parameters, which may change.
func (w *writer) signature(s *types.Signature) string {
	var takes, gives []string
	for i := range s.Params().Len() {
		t := s.Params().At(i).Type()
		if slice, is := t.(*types.Slice); is && s.Variadic() && i == s.Params().Len()-1 {
			takes = append(takes, "..."+w.typ(slice.Elem()))
			continue
		}
		takes = append(takes, w.typ(t))
	}
	for v := range s.Results().Variables() {
		gives = append(gives, w.typ(v.Type()))
	}
	text := w.parameters(s.TypeParams()) + "(" + strings.Join(takes, ", ") + ")"
	switch len(gives) {
	case 0:
		return text
	case 1:
		return text + " " + gives[0]
	}
	return text + " (" + strings.Join(gives, ", ") + ")"
}

// typ writes a type.
func (w *writer) typ(t types.Type) string {
	switch t := t.(type) {
	case *types.Signature:
		return "func" + w.signature(t)
	case *types.Pointer:
		return "*" + w.typ(t.Elem())
	case *types.Slice:
		return "[]" + w.typ(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), w.typ(t.Elem()))
	case *types.Map:
		return "map[" + w.typ(t.Key()) + "]" + w.typ(t.Elem())
	case *types.Chan:
		return map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] + w.typ(t.Elem())
	case *types.Named:
		return w.name(t.Obj()) + w.arguments(t.TypeArgs())
	case *types.Alias:
		return w.name(t.Obj()) + w.arguments(t.TypeArgs())
	}
	return types.TypeString(t, w.qualified)
}

func (w *writer) name(o *types.TypeName) string {
	if o.Pkg() == nil || w.qualified(o.Pkg()) == "" {
		return o.Name()
	}
	return w.qualified(o.Pkg()) + "." + o.Name()
}

func (w *writer) arguments(list *types.TypeList) string {
	var all []string
	for t := range list.Types() {
		all = append(all, w.typ(t))
	}
	if all == nil {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// all returns the records of all published modules below root.
func all(root string) (map[string][]string, error) {
	modules, err := published.Modules(root)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, m := range modules {
		of, err := records(filepath.Join(root, filepath.FromSlash(m.Dir)))
		if err != nil {
			return nil, err
		}
		maps.Copy(found, of)
	}
	return found, nil
}
