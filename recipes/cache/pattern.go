package cache

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/docent-go/docent/client"
)

// Pattern is a path with parameters, such as "/apps/{app}/instances/{id}". Each part
// between slashes is a name or a parameter. A parameter stands in braces, and matches
// every name. Its own name has letters, digits, "_" and "-", and occurs once.
//
// A pattern is a constant of the program: a reader passes it to [NewLevel], and a writer
// calls Path. Nothing is escaped: a parameter is the name of a node.
type Pattern string

// Path puts parameters into the pattern, in its order. It refuses a wrong number of
// them, and a parameter that no node can have as its name: an empty one, ".", "..", one
// with a slash, and one with a character that ZooKeeper refuses. The error of a
// parameter matches [client.ErrInvalidPath]. An invalid pattern is an error too.
func (p Pattern) Path(params ...string) (string, error) { return compile(p).Path(params...) }

// Match returns the parameters of a path, and whether the whole path matches. An invalid
// pattern matches nothing.
func (p Pattern) Match(path string) (Params, bool) { return compile(p).Match(path) }

// Params are the parameters of a path that matches a pattern.
type Params struct {
	of   *pattern // nil for the zero value
	path string
}

// Get returns a parameter. It is never empty if the pattern has a parameter of that name,
// and "" otherwise.
func (p Params) Get(name string) string {
	for is, value := range p.all {
		if is == name {
			return value
		}
	}
	return ""
}

// String is for logs: "app=orders id=i7".
func (p Params) String() string {
	var s strings.Builder
	for name, value := range p.all {
		if s.Len() > 0 {
			s.WriteByte(' ')
		}
		s.WriteString(name + "=" + value)
	}
	return s.String()
}

// all yields the names and values, in the order of the pattern.
func (p Params) all(yield func(name, value string) bool) {
	if p.of == nil {
		return
	}
	rest := p.path
	for _, part := range p.of.parts {
		var value string
		if value, rest = cutPart(rest); part.free && !yield(part.name, value) {
			return
		}
	}
}

// pattern is a [Pattern] that is ready for use. It is immutable.
type pattern struct {
	text  Pattern
	parts []part
	err   error // of a pattern that matches nothing
}

type part struct {
	name string // of the node, or of the parameter
	free bool   // it is a parameter
}

func compile(text Pattern) *pattern {
	p := &pattern{text: text}
	if err := client.ValidatePath(string(text)); err != nil {
		p.err = fmt.Errorf("cache: pattern: %w", err)
		return p
	}
	for rest := string(text); rest != "" && rest != "/"; {
		var name string
		name, rest = cutPart(rest)
		one := part{name: name}
		if strings.ContainsAny(name, "{}") {
			one = part{name: strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}"), free: true}
			if "{"+one.name+"}" != name || !parameterName(one.name) {
				p.err = fmt.Errorf("cache: pattern %s: the part %q is no parameter; one is {name}, with letters, digits, \"_\" and \"-\"", text, name)
				return p
			}
		}
		for _, other := range p.parts {
			if one.free && one == other {
				p.err = fmt.Errorf("cache: pattern %s: two parameters have the name %s", text, one.name)
				return p
			}
		}
		p.parts = append(p.parts, one)
	}
	return p
}

func parameterName(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' {
			return false
		}
	}
	return s != ""
}

// cutPart returns the first part of a path, and what is behind it.
func cutPart(path string) (name, rest string) {
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		return path[1 : 1+i], path[1+i:]
	}
	return path[1:], ""
}

// childPath is the path of a node right below another.
func childPath(path, name string) string {
	if path == "/" {
		return path + name
	}
	return path + "/" + name
}

// fits returns how many parts a path has, if they are the first parts of the pattern, and
// -1 otherwise. The path is one that a node has.
func (p *pattern) fits(path string) int {
	switch {
	case p.err != nil || path == "":
		return -1
	case path == "/":
		return 0
	}
	n := 0
	for ; path != ""; n++ {
		var name string
		if name, path = cutPart(path); n == len(p.parts) || !p.parts[n].free && p.parts[n].name != name {
			return -1
		}
	}
	return n
}

// matches reports whether the pattern matches a path that a node has.
func (p *pattern) matches(path string) bool { return p.fits(path) == len(p.parts) }

// free is how many parameters there are.
func (p *pattern) free() (n int) {
	for _, part := range p.parts {
		if part.free {
			n++
		}
	}
	return n
}

// overlap returns a path that both patterns match, and whether there is one.
func (p *pattern) overlap(q *pattern) (path string, both bool) {
	if len(p.parts) != len(q.parts) {
		return "", false
	}
	path = "/"
	for i, a := range p.parts {
		b := q.parts[i]
		switch {
		case !a.free && !b.free && a.name != b.name:
			return "", false
		case a.free:
			a = b
		}
		path = childPath(path, a.name)
	}
	return path, true
}

// String returns the pattern.
func (p *pattern) String() string { return string(p.text) }

// Path is [Pattern.Path].
func (p *pattern) Path(params ...string) (string, error) {
	switch n := p.free(); {
	case p.err != nil:
		return "", p.err
	case n != len(params):
		return "", fmt.Errorf("cache: pattern %s: the number of parameters is %d, want %d", p.text, len(params), n)
	}
	rest := params
	for _, part := range p.parts {
		if !part.free {
			continue
		}
		if err := validName(rest[0]); err != nil {
			return "", fmt.Errorf("cache: pattern %s: the parameter %s: %w", p.text, part.name, err)
		}
		rest = rest[1:]
	}
	return p.fill(params), nil
}

// fill puts as many parameters as there are into the pattern.
func (p *pattern) fill(params []string) string {
	if len(p.parts) == 0 {
		return "/"
	}
	var path strings.Builder
	for _, part := range p.parts {
		name := part.name
		if part.free {
			name, params = params[0], params[1:]
		}
		path.WriteByte('/')
		path.WriteString(name)
	}
	return path.String()
}

// validName returns nil if a node can have the name.
func validName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", client.ErrInvalidPath)
	case strings.Contains(name, "/"):
		return fmt.Errorf("%w: %q has a slash; encode it, for example with url.PathEscape", client.ErrInvalidPath, name)
	default:
		return client.ValidatePath("/" + name)
	}
}

// Match is [Pattern.Match].
func (p *pattern) Match(path string) (Params, bool) {
	if client.ValidatePath(path) != nil || !p.matches(path) {
		return Params{}, false
	}
	return Params{p, path}, true
}
