package cache_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
)

const (
	configPath   cache.Pattern = "/apps/{app}/config"
	instancePath cache.Pattern = "/apps/{app}/instances/{id}"
)

func TestPatternPath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern cache.Pattern
		params  []string
		want    string // a path, or a part of the error
		invalid bool   // the error matches client.ErrInvalidPath
	}{
		{pattern: instancePath, params: []string{"orders", "i7"}, want: "/apps/orders/instances/i7"},
		{pattern: instancePath, params: []string{"{app}", "a%2Fb"}, want: "/apps/{app}/instances/a%2Fb"},
		{pattern: instancePath, params: []string{"...", "zookeeper"}, want: "/apps/.../instances/zookeeper"},
		{pattern: configPath, params: []string{"b c"}, want: "/apps/b c/config"},
		{pattern: "/", want: "/"},
		{pattern: "/config", want: "/config"},
		{pattern: "/{name}", params: []string{"x"}, want: "/x"},
		{pattern: instancePath, params: []string{"orders"}, want: "pattern /apps/{app}/instances/{id}: the number of parameters is 1, want 2"},
		{pattern: configPath, params: []string{"a", "b"}, want: "the number of parameters is 2, want 1"},
		{pattern: configPath, want: "the number of parameters is 0, want 1"},
		{pattern: instancePath, params: []string{"orders", ""}, want: "the parameter id: ", invalid: true},
		{pattern: instancePath, params: []string{"", "i7"}, want: "the parameter app: ", invalid: true},
		{pattern: configPath, params: []string{"a/b"}, want: `the parameter app: `, invalid: true},
		{pattern: configPath, params: []string{"a/"}, want: `"a/" has a slash; encode it, for example with url.PathEscape`, invalid: true},
		{pattern: configPath, params: []string{"/"}, want: "has a slash", invalid: true},
		{pattern: configPath, params: []string{"."}, want: "relative parts", invalid: true},
		{pattern: configPath, params: []string{".."}, want: "relative parts", invalid: true},
		{pattern: configPath, params: []string{"a\x00"}, want: "U+0000", invalid: true},
		{pattern: configPath, params: []string{"a\xff"}, want: "not valid UTF-8", invalid: true},
		{pattern: configPath, params: []string{"\U0001f512"}, want: "U+1F512", invalid: true},
		{pattern: "", want: "it is empty", invalid: true},
		{pattern: "apps/{app}", want: "it is relative", invalid: true},
		{pattern: "/apps/{app}/", want: "ends with", invalid: true},
		{pattern: "/apps//{app}", want: "empty part", invalid: true},
		{pattern: "/apps/../{app}", want: "relative parts", invalid: true},
		{pattern: "/apps/{}", want: `the part "{}" is no parameter; one is {name}, with letters, digits, "_" and "-"`},
		{pattern: "/apps/{app", want: `the part "{app" is no parameter`},
		{pattern: "/apps/app}", want: `the part "app}" is no parameter`},
		{pattern: "/apps/i-{id}", want: `the part "i-{id}" is no parameter`},
		{pattern: "/apps/{a}{b}", want: `the part "{a}{b}" is no parameter`},
		{pattern: "/apps/{{a}}", want: `the part "{{a}}" is no parameter`},
		{pattern: "/apps/{a b}", want: `the part "{a b}" is no parameter`},
		{pattern: "/apps/{app}/instances/{app}", want: "two parameters have the name app"},
	} {
		got, err := tt.pattern.Path(tt.params...)
		level, levelErr := cache.NewLevel(tt.pattern, cache.Text).Path(tt.params...)
		switch {
		case level != got || (err == nil) != (levelErr == nil):
			t.Errorf("%s %q: the level says %q, %v", tt.pattern, tt.params, level, levelErr)
		case err == nil && got != tt.want:
			t.Errorf("%s %q: %q, want %q", tt.pattern, tt.params, got, tt.want)
		case err != nil && (!strings.HasPrefix(err.Error(), "cache: pattern") || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s %q: %v, want %q", tt.pattern, tt.params, err, tt.want)
		case errors.Is(err, client.ErrInvalidPath) != tt.invalid:
			t.Errorf("%s %q: %v matches ErrInvalidPath: %v", tt.pattern, tt.params, err, !tt.invalid)
		}
	}
}

// A pattern matches whole paths: no part of one, and nothing below one.
func TestPatternMatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern cache.Pattern
		path    string
		want    string // the text of the parameters; "-" if it does not match
	}{
		{instancePath, "/apps/orders/instances/i7", "app=orders id=i7"},
		{instancePath, "/apps/orders/instances", "-"},
		{instancePath, "/apps/orders/instances/", "-"},
		{instancePath, "/apps/orders/instances/i7/lease", "-"},
		{instancePath, "/apps/orders/instance/i7", "-"},
		{instancePath, "/apps/orders/instancesx/i7", "-"},
		{instancePath, "/apps//instances/i7", "-"},
		{instancePath, "/apps/../instances/i7", "-"},
		{instancePath, "/apps/orders/instances/.", "-"},
		{instancePath, "apps/orders/instances/i7", "-"},
		{instancePath, "/app/orders/instances/i7", "-"},
		{instancePath, "/x/apps/orders/instances/i7", "-"},
		{instancePath, "/apps/orders/instances/{id}", "app=orders id={id}"},
		{instancePath, "/", "-"},
		{instancePath, "", "-"},
		{configPath, "/apps/config/config", "app=config"},
		{configPath, "/apps/config", "-"},
		{"/", "/", ""},
		{"/", "", "-"},
		{"/", "/a", "-"},
		{"/config", "/config", ""},
		{"/config", "/conf", "-"},
		{"/{a}", "/", "-"},
		{"/{a-1}/{b_2}", "/x/y", "a-1=x b_2=y"},
		{"/{a}/{a}", "/x/x", "-"},
		{"", "", "-"},
	} {
		got := "-"
		params, ok := tt.pattern.Match(tt.path)
		if ok {
			got = params.String()
		}
		if got != tt.want {
			t.Errorf("%s and %s: %q, want %q", tt.pattern, tt.path, got, tt.want)
		}
		if other, same := cache.NewLevel(tt.pattern, cache.Text).Match(tt.path); same != ok || other.String() != params.String() {
			t.Errorf("%s and %s: the level says %q, %v", tt.pattern, tt.path, other, same)
		}
	}
	params, _ := instancePath.Match("/apps/orders/instances/i7")
	if params.Get("app") != "orders" || params.Get("id") != "i7" || params.Get("instances") != "" || params.Get("") != "" {
		t.Errorf("the parameters are %q, %q, %q", params.Get("app"), params.Get("id"), params.Get("instances"))
	}
	if none := (cache.Params{}); none.Get("app") != "" || none.String() != "" {
		t.Errorf("the zero value has %q", none)
	}
}

// NewTypedTree refuses levels of which it could not say which one a node is of.
func TestTypedTreeRefuses(t *testing.T) {
	t.Parallel()
	level := func(p cache.Pattern) *cache.Level[string] { return cache.NewLevel(p, cache.Text) }
	for _, tt := range []struct {
		levels cache.Levels
		want   []string // parts of the error
	}{
		{cache.Levels{level(configPath), level(instancePath)}, []string{"the client is nil"}},
		{nil, []string{"there is no level; make one with NewLevel"}},
		{cache.Levels{nil}, []string{"a level is nil"}},
		{cache.Levels{(*cache.Level[string])(nil)}, []string{"a level is nil"}},
		{cache.Levels{&cache.Level[string]{}}, []string{"a level is nil; make it with NewLevel"}},
		{cache.Levels{cache.NewLevel[string](configPath, nil)}, []string{"level /apps/{app}/config: the codec is nil"}},
		{cache.Levels{level("/apps/{}"), level("apps")}, []string{`/apps/{}: the part "{}"`, `"apps": it is relative`}},
		{cache.Levels{level(configPath), level(configPath)}, []string{"the levels /apps/{app}/config and /apps/{app}/config both match /apps/app/config"}},
		{cache.Levels{level("/apps/{app}"), level("/apps/{name}")}, []string{"the levels /apps/{app} and /apps/{name} both match /apps/name"}},
		{cache.Levels{level(configPath), level(instancePath), level("/apps/{app}/{what}")}, []string{"/apps/{app}/config and /apps/{app}/{what} both match /apps/app/config"}},
		{cache.Levels{level("/apps/{app}/config"), level("/apps/all/{what}")}, []string{"/apps/{app}/config and /apps/all/{what} both match /apps/all/config"}},
		{cache.Levels{level("/{a}/x"), level("/y/{b}"), level("/{c}/{d}")}, []string{"both match /y/x", "/{a}/x and /{c}/{d} both match /c/x", "/y/{b} and /{c}/{d} both match /y/d"}},
		{cache.Levels{level("/apps/{app}"), level("/apps/{app}/{x}"), level("/apps/a/b/c"), level("/apps/a/b/d"), level("/apps")}, []string{"the client is nil"}},
	} {
		tree, err := cache.NewTypedTree(nil, tt.levels)
		if tree != nil || err == nil {
			t.Errorf("%v: %v", tt.levels, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %q", tt.levels, err, want)
			}
		}
		if n := strings.Count(err.Error(), "both match"); n > len(tt.want) {
			t.Errorf("%v: %d pairs, want %d: %v", tt.levels, n, len(tt.want), err)
		}
	}
}

// somePatterns are all patterns with up to three parts, which are a, b or a parameter.
func somePatterns() []cache.Pattern {
	all := []cache.Pattern{""}
	for from, n := 0, 1; n <= 3; n++ {
		to := len(all)
		for _, above := range all[from:to] {
			for _, part := range []string{"a", "b", fmt.Sprintf("{p%d}", n)} {
				all = append(all, above+"/"+cache.Pattern(part))
			}
		}
		from = to
	}
	return append(all[1:], "/")
}

// Two levels are refused if there is a path that both match, and not otherwise. The error
// has such a path.
func TestOverlap(t *testing.T) {
	t.Parallel()
	var paths []string // with a name that no pattern has
	for _, p := range somePatterns() {
		paths = append(paths, regexp.MustCompile(`\{p\d\}`).ReplaceAllString(string(p), "c"))
	}
	var levels []*cache.Level[string]
	matches := map[string][]bool{}
	for _, p := range somePatterns() {
		l := cache.NewLevel(p, cache.Text)
		levels = append(levels, l)
		for _, path := range paths {
			_, ok := l.Match(path)
			matches[l.String()] = append(matches[l.String()], ok)
		}
	}
	pairs, overlaps := 0, 0
	for _, l := range levels {
		for _, other := range levels {
			both := false
			for i := range paths {
				both = both || matches[l.String()][i] && matches[other.String()][i]
			}
			pairs++
			_, err := cache.NewTypedTree(nil, cache.Levels{l, other})
			_, example, refused := strings.Cut(err.Error(), "both match ")
			if refused != both {
				t.Errorf("%v and %v: %v, want both match: %v", l, other, err, both)
			}
			if refused {
				overlaps++
				_, one := l.Match(example)
				_, two := other.Match(example)
				if !one || !two {
					t.Errorf("%v and %v: %v, which they do not", l, other, err)
				}
			}
		}
	}
	t.Logf("%d of %d pairs overlap", overlaps, pairs)
	if overlaps < 100 || overlaps > pairs/2 {
		t.Errorf("%d of %d pairs overlap", overlaps, pairs)
	}
}

// A path that is made of parameters matches with these parameters. A path that matches is
// made of its parameters. A regular expression says the same.
func FuzzPattern(f *testing.F) {
	f.Add("/apps/{app}/instances/{id}", "orders", "i7", "/apps/orders/instances/i7")
	f.Add("/apps/{app}/config", "a/b", ".", "/apps/orders/config/x")
	f.Add("/{a}/{b}", "", "..", "//")
	f.Add("/{a}", "{a}", "\x00", "/zookeeper")
	f.Add("/", "", "", "/")
	f.Add("/a{b}/{c", "x", "y", "/ax/y")
	f.Fuzz(func(t *testing.T, text, a, b, path string) {
		pattern := cache.Pattern(text)
		names := regexp.MustCompile(`\{[^/]*\}`).FindAllString(text, -1)
		given := []string{a, b}[:min(len(names), 2)]
		if made, err := pattern.Path(given...); err == nil {
			params, ok := pattern.Match(made)
			if bad := client.ValidatePath(made); !ok || bad != nil {
				t.Fatalf("%q of %q: it matches: %v; %v", made, given, ok, bad)
			}
			for i, name := range names {
				if got := params.Get(strings.Trim(name, "{}")); got != given[i] {
					t.Errorf("%q of %q: %s is %q", made, given, name, got)
				}
			}
		}
		params, ok := pattern.Match(path)
		if expression := parameterOrSlash.ReplaceAllString(regexp.QuoteMeta(text), `([^/]+)`); client.ValidatePath(path) != nil {
			if ok {
				t.Errorf("%q matches %q", text, path)
			}
		} else if _, err := pattern.Path(slices.Repeat([]string{"x"}, len(names))...); err == nil {
			want := regexp.MustCompile(`^` + expression + `$`).FindStringSubmatch(path)
			if ok != (want != nil) {
				t.Errorf("%q matches %q: %v, %s says %v", text, path, ok, expression, want)
			}
			var got []string
			for _, name := range names {
				got = append(got, params.Get(strings.Trim(name, "{}")))
			}
			if ok && !slices.Equal(got, want[1:]) {
				t.Errorf("%q and %q: %q, want %q", text, path, got, want[1:])
			}
		} else if ok {
			t.Errorf("%q is invalid (%v) and matches %q", text, err, path)
		}
	})
}

var parameterOrSlash = regexp.MustCompile(`\\\{[^/]*?\\\}`)
