package testrig

import (
	"errors"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// WantErr wants that err matches all targets.
func WantErr(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v does not match %v", err, target)
		}
	}
}

// WantNoErr wants that err matches none of the targets.
func WantNoErr(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("error %v matches %v", err, target)
		}
	}
}

// WantErrText wants that err says all parts, in one line.
func WantErrText(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q has several lines", err)
	}
}

// WantNoWatch wants that no server watches anything.
func (r *Rig) WantNoWatch() {
	r.Helper()
	if n := r.Srv.WatchCount(); n != 0 {
		r.Errorf("%d watches left: %+v", n, r.Srv.Watches())
	}
}

// WantNoChild wants that nothing stands below the paths.
func (r *Rig) WantNoChild(paths ...string) {
	r.Helper()
	for _, path := range paths {
		if left := r.Srv.Children(path); len(left) != 0 {
			r.Errorf("left behind in %s: %v", path, left)
		}
	}
}

// WantNoGoroutine wants that no goroutine of the caller's bubble runs a function that frames
// matches, once all wait.
func WantNoGoroutine(t testing.TB, frames *regexp.Regexp) {
	t.Helper()
	if left := Goroutines(t, frames); len(left) != 0 {
		t.Errorf("%d goroutines left, one of them:\n%s", len(left), left[0])
	}
}

// Goroutines waits until all goroutines of the caller's bubble wait, and returns the stacks
// of those that run a function that frames matches, the caller left out.
func Goroutines(t testing.TB, frames *regexp.Regexp) (stacks []string) {
	t.Helper()
	synctest.Wait()
	text, whole := allStacks()
	all := strings.Split(text, "\n\n")
	own := bubbleNumber.FindString(all[0])
	if own == "" || !whole {
		t.Fatal("not in a bubble, or too many goroutines")
	}
	for _, stack := range all[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbleNumber.FindString(head) == own && frames.MatchString(stack) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

var bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)

// stackRoom is kept: new memory of this size costs more than the stacks.
var stackRoom struct {
	sync.Mutex
	buf [16 << 20]byte
}

func allStacks() (text string, whole bool) {
	stackRoom.Lock()
	defer stackRoom.Unlock()
	n := runtime.Stack(stackRoom.buf[:], true)
	return string(stackRoom.buf[:n]), n < len(stackRoom.buf)
}
