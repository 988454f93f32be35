package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever does not fit a system, or what vet reports there, is found for that system alone.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]string // by system; nothing is found where it says nothing
	}{
		"a number that 32 bits do not hold": {
			map[string]string{"a.go": "package a\n\nvar Big int = 1 << 40\n"},
			map[string]string{"linux/386": "(overflows)", "linux/arm": "(overflows)", "linux/arm64": "", "darwin/arm64": ""},
		},
		"a call that a system does not have": {
			map[string]string{"a.go": "package a\n\nimport \"syscall\"\n\nvar _ = syscall.Kill\n"},
			map[string]string{"windows/amd64": "undefined: syscall.Kill", "freebsd/amd64": ""},
		},
		"a format in a test of one system": {
			map[string]string{"a.go": "package a\n", "a_windows_test.go": "package a\n\nimport \"fmt\"\n\nfunc f() { fmt.Printf(\"%d\", \"x\") }\n"},
			map[string]string{"windows/amd64": "wrong type", "linux/386": ""},
		},
		"an import that nothing provides": {
			map[string]string{"a.go": "package a\n", "a_darwin.go": "package a\n\nimport _ \"example.com/b\"\n"},
			map[string]string{"darwin/amd64": "example.com/b", "linux/386": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c.files["go.mod"] = "module example.com/a\n\ngo 1.25\n"
			for file, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for system, want := range c.want {
				var out strings.Builder
				found, err := look(&out, system, dir)
				if err != nil || found != (want != "") || !strings.Contains(out.String(), want) {
					t.Errorf("%s: found %v, error %v, want %q in\n%s", system, found, err, want, &out)
				}
			}
		})
	}
	if _, err := look(new(strings.Builder), "linux", "."); err == nil {
		t.Error("a system without a processor is none")
	}
	if found, err := look(new(strings.Builder), "linux/386", t.TempDir()); !found && err == nil {
		t.Error("a folder without a module is no clean one")
	}
}
