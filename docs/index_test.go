package docs_test

import (
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every page is on the index. Decisions and results have an index of their own.
func TestIndex(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		index, link := "README.md", path
		if dir, name := filepath.Split(path); (dir == "decisions/" || dir == "../bench/results/") && name != "README.md" {
			index, link = dir+"README.md", name
		}
		if path != index && !strings.Contains(read(t, index), "]("+link) {
			t.Errorf("docs/%s does not link %s", index, path)
		}
	}
}

// Every example that is a program is on the index or in README.md.
func TestIndexOfExamples(t *testing.T) {
	t.Parallel()
	index := read(t, "README.md") + read(t, "../README.md")
	programs, err := filepath.Glob("examples/*/main.go")
	if err != nil || len(programs) == 0 {
		t.Fatalf("programs %v, error %v", programs, err)
	}
	for _, program := range programs {
		if dir := filepath.Dir(program); !strings.Contains(index, dir) {
			t.Errorf("neither docs/README.md nor README.md names docs/%s", dir)
		}
	}
}

// docs/client.md names every option of package client.
func TestClientPage(t *testing.T) {
	t.Parallel()
	pkg, err := imported(t).Import(qualifiers["client"])
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, "client.md")
	kinds := []string{"Option", "CreateOption", "SetOption", "WatchOption"}
	found := 0
	for _, name := range pkg.Scope().Names() {
		f, isFunction := pkg.Scope().Lookup(name).(*types.Func)
		if !isFunction || !f.Exported() || f.Signature().Results().Len() != 1 {
			continue
		}
		result, isNamed := f.Signature().Results().At(0).Type().(*types.Named)
		if !isNamed || !slices.Contains(kinds, result.Obj().Name()) {
			continue
		}
		if found++; !strings.Contains(page, "`client."+name+"`") {
			t.Errorf("docs/client.md does not name client.%s, a %s", name, result.Obj().Name())
		}
	}
	if found < len(kinds) {
		t.Errorf("package client has %d options", found)
	}
}

// docs/from-go-zookeeper.md names every call, function and option of go-zookeeper.
func TestGoZookeeperPage(t *testing.T) {
	t.Parallel()
	pkg, err := imported(t).Import(qualifiers["zk"])
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, owner := range []string{"Conn", "Lock"} {
		calls := types.NewMethodSet(types.NewPointer(pkg.Scope().Lookup(owner).Type()))
		for call := range calls.Methods() {
			if call.Obj().Exported() {
				names = append(names, call.Obj().Name())
			}
		}
	}
	for _, name := range pkg.Scope().Names() {
		if f, isFunction := pkg.Scope().Lookup(name).(*types.Func); isFunction && f.Exported() {
			names = append(names, "zk."+name)
		}
	}
	page := strings.Join(inlines(read(t, "from-go-zookeeper.md")), "\n") + "\n"
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `\b`).MatchString(page) {
			t.Errorf("docs/from-go-zookeeper.md does not name %s", name)
		}
	}
	if !slices.Contains(names, "CreateTTL") || !slices.Contains(names, "zk.WithLogger") {
		t.Errorf("go-zookeeper has %v", names)
	}
}

// docs/operations.md sends a reader to the page of every alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	page := read(t, "operations.md")
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(read(t, "../observe/alerts.yaml"), -1)
	if len(alerts) == 0 {
		t.Error("observe/alerts.yaml has no alerts")
	}
	for _, alert := range alerts {
		if link := "[" + alert[1] + "](runbook.md#" + strings.ToLower(alert[1]) + ")"; !strings.Contains(page, link) {
			t.Errorf("docs/operations.md does not have %s", link)
		}
	}
}

// Every file of names is for a page.
func TestBlockFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/blocks/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	var names []string
	for _, path := range pages(t) {
		names = append(names, filepath.Base(path))
	}
	for _, file := range files {
		page := strings.TrimSuffix(filepath.Base(file), ".go") + ".md"
		if page != "common.md" && !slices.Contains(names, page) {
			t.Errorf("docs/%s is for no page", file)
		}
	}
}
