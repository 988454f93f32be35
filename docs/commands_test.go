package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = ".."

// elsewhere is a directory that a page has the reader make.
const elsewhere = "a directory of the reader's own"

// command is a command line that a page shows, with the directory of the
// repository in which the page runs it.
type command struct {
	words []string
	dir   string // empty if it is not known, as for code within a sentence
}

var (
	assignment = regexp.MustCompile(`^[A-Za-z_]+=`)
	separator  = regexp.MustCompile(`&&|;`)
)

// commandsIn returns the commands of lines that follow each other in one shell.
func commandsIn(lines, dir string) []command {
	var found []command
	var made []string
	for line := range strings.Lines(lines) {
		line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " #")
		for _, part := range separator.Split(line, -1) {
			words := strings.Fields(part)
			for len(words) > 0 && (assignment.MatchString(words[0]) || words[0] == "export") {
				words = words[1:]
			}
			if len(words) == 0 {
				continue
			}
			switch {
			case len(words) != 2:
			case words[0] == "mkdir":
				made = append(made, words[1])
			case words[0] == "cd" && slices.Contains(made, words[1]):
				dir = elsewhere
			case words[0] == "cd":
				dir = filepath.Join(dir, words[1])
			}
			found = append(found, command{words, dir})
		}
	}
	return found
}

// commands returns every command line of a page: in blocks, in indented lines
// and in code within a sentence.
func commands(page string) []command {
	var found []command
	for _, b := range codeBlocks(page) {
		if b.language == "sh" || b.language == "" {
			found = append(found, commandsIn(b.text, root)...)
		}
	}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		switch {
		case fenced:
		case strings.HasPrefix(line, "    "):
			found = append(found, commandsIn(line, root)...)
		default:
			for _, code := range inlineCode.FindAllString(line, -1) {
				found = append(found, commandsIn(strings.Trim(code, "`"), "")...)
			}
		}
	}
	return found
}

// sourceOf returns the Go source below a directory, without tests.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			all.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// goCommand returns what is wrong with a call of the go command, if anything is.
func goCommand(t *testing.T, cmd command) error {
	t.Helper()
	words := cmd.words[2:]
	dirs := []string{cmd.dir}
	if cmd.dir == "" { // in a sentence that names the module
		for _, module := range []string{".", "bench", "integration", "cmd/docent"} {
			dirs = append(dirs, filepath.Join(root, module))
		}
		dirs = dirs[1:]
	}
	if len(words) > 1 && words[0] == "-C" {
		for i := range dirs {
			dirs[i] = filepath.Join(dirs[i], words[1])
		}
		words = words[2:]
	}
	at := slices.IndexFunc(words, func(w string) bool { return w == "." || strings.HasPrefix(w, "./") })
	if at < 0 {
		return nil // no package of this repository
	}
	var err error
	for _, dir := range dirs {
		dir = filepath.Join(dir, strings.TrimSuffix(words[at], "..."))
		if _, err = os.Stat(dir); err == nil && cmd.words[1] == "run" {
			err = program(t, dir, words[at+1:])
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// program returns what is wrong with running the program in dir, if anything is.
func program(t *testing.T, dir string, args []string) error {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 || !strings.Contains("\n"+read(t, files[0]), "\npackage main\n") {
		return fmt.Errorf("%s has no program", dir)
	}
	if filepath.Base(filepath.Clean(dir)) == "docent" && len(args) > 0 {
		return docent(t, args)
	}
	return flags(sourceOf(t, dir), args)
}

var flagWord = regexp.MustCompile(`^--?([a-zA-Z][a-z0-9-]*)(=.*)?$`)

// flags returns which of the words is a flag that the source does not declare.
func flags(source string, words []string) error {
	for _, word := range words {
		if word == "--" {
			return nil
		}
		m := flagWord.FindStringSubmatch(word)
		if m != nil && m[1] != "help" && !strings.Contains(source, `"`+m[1]+`"`) {
			return fmt.Errorf("there is no flag %s", word)
		}
	}
	return nil
}

// docent returns what is wrong with the arguments of the command docent.
func docent(t *testing.T, words []string) error {
	t.Helper()
	source := sourceOf(t, filepath.Join(root, "cmd/docent"))
	own := []string{"help", "completion", "COMMAND"}
	for _, m := range regexp.MustCompile(`Use:\s+"([a-z]+)`).FindAllStringSubmatch(source, -1) {
		own = append(own, m[1])
	}
	if !strings.HasPrefix(words[0], "-") && !slices.Contains(own, words[0]) {
		return fmt.Errorf("docent has no command %s, but %v", words[0], own)
	}
	return flags(source, words)
}

// wrongCommand returns what is wrong with a command, if anything is. Of
// commands that are not this repository's it returns nil.
func wrongCommand(t *testing.T, cmd command) error {
	t.Helper()
	words := cmd.words
	switch {
	case cmd.dir == elsewhere:
	case words[0] == "cd" && cmd.dir != "":
		_, err := os.Stat(cmd.dir)
		return err
	case words[0] == "make" && len(words) > 1:
		makefile := read(t, filepath.Join(root, "Makefile"))
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(words[1]) + `:`).MatchString(makefile) {
			return fmt.Errorf("the Makefile has no target %s", words[1])
		}
	case words[0] == "go" && len(words) > 2 && slices.Contains([]string{"run", "test", "build", "install", "vet"}, words[1]):
		return goCommand(t, cmd)
	case words[0] == "docent" && len(words) > 1:
		return docent(t, words[1:])
	case strings.HasPrefix(words[0], "scripts/"), strings.HasPrefix(words[0], ".ci/"):
		info, err := os.Stat(filepath.Join(root, words[0]))
		if err == nil && info.Mode()&0o100 == 0 {
			return fmt.Errorf("%s cannot be executed", words[0])
		}
		return err
	}
	return nil
}

// Every command of this repository that a page shows is there.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, path := range pages(t) {
		for _, cmd := range commands(read(t, path)) {
			if err := wrongCommand(t, cmd); err != nil {
				t.Errorf("%s: %s: %v", path, strings.Join(cmd.words, " "), err)
			}
		}
	}
}

// A command that is not there is noticed, wherever on a page it is.
func TestWrongCommands(t *testing.T) {
	t.Parallel()
	for _, page := range []string{
		"Say `make tset`.\n",
		"    make tset    # the tests\n",
		"```sh\ncd bench && go run . -nosuchflag\n```\n",
		"```sh\ncd benches\n```\n",
		"    $ go run ./docs/examples/nothing\n",
		"    go run ./client\n",
		"    X=1 go run -C cmd/docent . lst\n",
		"Say `docent lst /locks`.\n",
		"Say `docent who --nosuchflag /locks`.\n",
		"    scripts/nothing.sh start\n",
		"    go test ./nothing\n",
	} {
		wrong := 0
		for _, cmd := range commands(page) {
			if wrongCommand(t, cmd) != nil {
				wrong++
			}
		}
		if wrong != 1 {
			t.Errorf("%d commands are wrong in %q, want 1", wrong, page)
		}
	}
}
