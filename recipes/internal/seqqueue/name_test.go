package seqqueue_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// curatorKey is StandardLockInternalsDriver.standardFixForSorting: the text
// after the last occurrence of the prefix.
func curatorKey(prefix, name string) (string, bool) {
	for i := len(name) - len(prefix); i >= 0; i-- {
		if strings.HasPrefix(name[i:], prefix) {
			return name[i+len(prefix):], true
		}
	}
	return "", false
}

// curatorKeyOrName is all of standardFixForSorting: a name without the prefix is its own key.
func curatorKeyOrName(prefix, name string) string {
	if key, ok := curatorKey(prefix, name); ok {
		return key
	}
	return name
}

var (
	tenDigits = regexp.MustCompile(`^[0-9]{10}$`)
	// What String.format("%010d") makes of a negative int.
	wrappedNumber = regexp.MustCompile(`^-([0-9]{9}|[1-9][0-9]{9})$`)
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		key     string // "" for a foreign child
		wrapped bool
	}{
		{"_c_0d8b1bd2-5e6a-4b5c-8d7e-0123456789ab-lock-0000000007", "0000000007", false},
		{"lock-0000000000", "0000000000", false},
		{"lock-lock-0000000001", "0000000001", false},
		{"lock-5-lock-2147483647", "2147483647", false},
		{"x-lock-0000000001x", "", false},
		{"lock-000000001", "", false},
		{"lock-00000000001", "", false},
		{"lock-", "", false},
		{"lock", "", false},
		{"", "", false},
		{"Lock-0000000001", "", false},
		{"lock-0000000001-lock-", "", false},
		{"lease-0000000001", "", false},
		{"lock-+000000001", "", false},
		{"lock- 000000001", "", false},
		{"lock-00000000\u0661", "", false}, // an Arabic digit
		{"lock--2147483648", "", true},
		{"lock--000000001", "", true},
		{"lock--1", "", false},           // no server writes it like that
		{"lock--", "", false},            // nor this
		{"lock--12345678901", "", false}, // nor this
		{"lock--x", "", false},
	} {
		n, wrapped, ok := seqqueue.Parse("lock-", tt.name)
		if ok != (tt.key != "") || n.Key != tt.key || wrapped != tt.wrapped || ok && n.Name != tt.name {
			t.Errorf("%q: %+v, wrapped %v, %v; want key %q, wrapped %v", tt.name, n, wrapped, ok, tt.key, tt.wrapped)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"_c_0-lock-0000000007", "lock--2147483648", "lock-lock-0000000001", "lock-x", "aaa0000000001", "lock--1"} {
		f.Add("lock-", name)
		f.Add("aa", name)
	}
	f.Fuzz(func(t *testing.T, prefix, name string) {
		if prefix == "" {
			return
		}
		key, has := curatorKey(prefix, name)
		wantOK := has && tenDigits.MatchString(key)
		wantWrapped := has && wrappedNumber.MatchString(key)
		n, wrapped, ok := seqqueue.Parse(prefix, name)
		if ok != wantOK || wrapped != wantWrapped || ok && (n.Key != key || n.Name != name) {
			t.Errorf("Parse(%q, %q) = %+v, %v, %v; want key %q, %v, %v", prefix, name, n, wrapped, ok, key, wantWrapped, wantOK)
		}
		if ok && fmt.Sprintf("%010d", n.Sequence()) != key {
			t.Errorf("Sequence of %q = %d", name, n.Sequence())
		}
	})
}
