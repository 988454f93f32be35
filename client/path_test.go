package client_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/docent-go/docent/client"
)

// javaAccepts is PathUtils.validatePath of ZooKeeper, rule by rule over UTF-16
// units. Bytes that are not UTF-8 have no such units, so no server sees them.
func javaAccepts(path string) bool {
	if !utf8.ValidString(path) {
		return false
	}
	u := utf16.Encode([]rune(path))
	switch {
	case len(u) == 0, u[0] != '/':
		return false
	case len(u) == 1:
		return true
	case u[len(u)-1] == '/':
		return false
	}
	partEnds := func(i int) bool { return i+1 == len(u) || u[i+1] == '/' }
	for i := 1; i < len(u); i++ {
		switch c := u[i]; {
		case c == 0, c == '/' && u[i-1] == '/':
			return false
		case c == '.' && u[i-1] == '.':
			if u[i-2] == '/' && partEnds(i) {
				return false
			}
		case c == '.':
			if u[i-1] == '/' && partEnds(i) {
				return false
			}
		case c <= 0x1f, c >= 0x7f && c <= 0x9f, c >= 0xd800 && c <= 0xf8ff, c >= 0xfff0:
			return false
		}
	}
	return true
}

func TestValidatePath(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path string
		want string // part of the error, "" for a good path
	}{
		{"/", ""},
		{"/a", ""},
		{"/a/b-c/0000000001", ""},
		{"/...", ""},
		{"/a..b/.c/d.", ""},
		{"/..a", ""},
		{"/ a b ", ""},
		{"/\u00a0\ud7ff\uf900\uffef", ""},
		{"", "empty"},
		{"a", "relative"},
		{"a/b", "relative"},
		{"./a", "relative"},
		{"//", "ends with"},
		{"/a/", "ends with"},
		{"//a", "empty part"},
		{"/a//b", "empty part"},
		{"/.", "relative parts"},
		{"/..", "relative parts"},
		{"/a/./b", "relative parts"},
		{"/a/../b", "relative parts"},
		{"/a/..", "relative parts"},
		{"/a\x00", "U+0000"},
		{"/a\x01b", "U+0001"},
		{"/a\x1f", "U+001F"},
		{"/\x7f", "U+007F"},
		{"/\u0080", "U+0080"},
		{"/\u009f", "U+009F"},
		{"/\ue000", "U+E000"},
		{"/\uf8ff", "U+F8FF"},
		{"/\ufff0", "U+FFF0"},
		{"/\ufffd", "U+FFFD"},
		{"/\uffff", "U+FFFF"},
		{"/\U00010000", "U+10000"},
		{"/\U0001f512", "U+1F512"},
		{"/\xff", "UTF-8"},
		{"/\xed\xa0\x80", "UTF-8"}, // a surrogate
		{"/a\xc0\x80", "UTF-8"},    // NUL in two bytes, as Java writes it
	} {
		err := client.ValidatePath(tt.path)
		if (err == nil) != javaAccepts(tt.path) {
			t.Errorf("%q: %v, a server accepts it: %v", tt.path, err, javaAccepts(tt.path))
		}
		if tt.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tt.path, err)
			}
			continue
		}
		if !errors.Is(err, client.ErrInvalidPath) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want %q", tt.path, err, tt.want)
		}
	}
}

func FuzzValidatePath(f *testing.F) {
	for _, s := range []string{"/", "/a", "/a/../b", "/..", "//", "/a\x00", "/\U0001f512", "/\xed\xa0\x80", "/a./.b/...", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		err := client.ValidatePath(path)
		if (err == nil) != javaAccepts(path) {
			t.Errorf("%q: %v, a server accepts it: %v", path, err, javaAccepts(path))
		}
		if err != nil && !errors.Is(err, client.ErrInvalidPath) {
			t.Errorf("%q: error %v does not match ErrInvalidPath", path, err)
		}
	})
}
