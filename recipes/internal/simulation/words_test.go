package simulation_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// words counts the calls that schedules have made, by names such as
// "recipes.InterProcessMutex.Acquire". The names come from the functions that are called, so
// none can be claimed that was not.
type words struct {
	mu     sync.Mutex // guards the rest
	n      ledger
	crowds map[string]bool // that have spoken
}

// say counts a call of f, and returns f to be called.
func say[F any](w *words, f F) F {
	w.add(spoken(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()))
	return f
}

// sayOf counts a call of the method of that name of whatever h is.
func sayOf[H any](w *words, h H, method string) H {
	t := reflect.TypeOf(h).Elem()
	if _, has := reflect.TypeOf(h).MethodByName(method); has && strings.Contains(t.PkgPath(), "docent/recipes") && !strings.Contains(t.PkgPath(), "internal") {
		w.add(path.Base(t.PkgPath()) + "." + t.Name() + "." + method)
	}
	return h
}

var (
	pointers = strings.NewReplacer("(*", "", ")", "", "-fm", "")
	ofTypes  = regexp.MustCompile(`\[.*\]`)
)

// spoken is the name of a function without its module.
func spoken(name string) string {
	name = ofTypes.ReplaceAllString(name, "")
	return pointers.Replace(name[strings.LastIndexByte(name, '/')+1:])
}

func (w *words) add(word string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n == nil {
		w.n = ledger{}
	}
	w.n[word]++
}

func (w *words) addAll(crowd string, l ledger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.add(l)
	w.crowds[crowd] = true
}

// vocabulary is everything exported of a package that can be called.
type vocabulary struct {
	words []string
	holds map[string]string // the type that one embeds
}

// add reads the sources of the package in a directory.
func (v *vocabulary) add(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, error %v", dir, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			v.declared(f.Name.Name, d)
		}
	}
}

func (v *vocabulary) declared(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		of := receiver(d)
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(of)) {
			v.words = append(v.words, strings.Replace(pkg+"."+of+"."+d.Name.Name, "..", ".", 1))
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			s, is := spec.(*ast.TypeSpec)
			if !is {
				continue
			}
			if body, is := s.Type.(*ast.StructType); is {
				for _, field := range body.Fields.List {
					if star, is := field.Type.(*ast.StarExpr); is && len(field.Names) == 0 {
						if of, is := star.X.(*ast.Ident); is {
							v.holds[pkg+"."+s.Name.Name] = pkg + "." + of.Name
						}
					}
				}
			}
		}
	}
}

// receiver is the type that a method is of, or "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	if generic, is := of.(*ast.IndexExpr); is {
		of = generic.X
	}
	if id, is := of.(*ast.Ident); is {
		return id.Name
	}
	return ""
}

// unspoken are the calls that schedules need not make, with reasons.
var unspoken = map[*regexp.Regexp]string{
	regexp.MustCompile(`^recipes\.(BusyError|LockError|WaitError)\.`):              "reads an error",
	regexp.MustCompile(`^shared\.CountDataError\.`):                                "reads an error",
	regexp.MustCompile(`^recipes\.(Contender|Family|Leadership|Mode|Since)\.`):     "reads a value",
	regexp.MustCompile(`\.Path$`):                                                  "says what the constructor was told",
	regexp.MustCompile(`^recipes\.(Hold|MultiHold)\.(LockPath|Err|FencingToken)$`): "is read by the judge, of every hold",
}

// wantAllSpoken fails for each exported call that no schedule has made and that needs no
// reason, and for each reason that is none.
func (w *words) wantAllSpoken(t *testing.T) {
	t.Helper()
	v := vocabulary{holds: map[string]string{}}
	v.add(t, "../..")
	v.add(t, "../../shared")
	known := map[string]bool{}
	for _, word := range v.words {
		known[word] = true
	}
	said := ledger{}
	for word, n := range w.n {
		of, method := word[:strings.LastIndexByte(word, '.')], word[strings.LastIndexByte(word, '.'):]
		for of != "" && !known[of+method] {
			of = v.holds[of]
		}
		said[of+method] += n
		if of == "" {
			t.Errorf("%s is no exported call", word)
		}
	}
	needless := map[string]bool{}
	for _, why := range unspoken {
		needless[why] = true
	}
	for _, word := range v.words {
		why := ""
		for names, reason := range unspoken {
			if names.MatchString(word) {
				why = reason
			}
		}
		delete(needless, why)
		if said[word] == 0 && why == "" {
			t.Errorf("no schedule calls %s", word)
		}
	}
	for why := range needless {
		t.Errorf("there is no exported call of which to say that it %s", why)
	}
	t.Logf("%d exported calls", len(v.words))
}
