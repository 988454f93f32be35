package client_test

import (
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

var (
	bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)
	ourFrames    = regexp.MustCompile(`docent/(client|recipes|retry|internal/\w+)\.|go-zookeeper/zk\.`)
)

// serverFrames begin the functions of the server that the tests run against.
const serverFrames = "docent/internal/zkserver."

// wantQuiet fails if a goroutine of the client or of go-zookeeper still runs
// in the caller's bubble, now: not after something has timed out.
func wantQuiet(t *testing.T) {
	t.Helper()
	synctest.Wait()
	for _, stack := range clientStacks(t) {
		t.Errorf("still running:\n%s", stack)
	}
}

// stackRoom is kept: new memory of this size costs more than the stacks.
var stackRoom struct {
	sync.Mutex
	buf [8 << 20]byte
}

func clientStacks(t *testing.T) (found []string) {
	t.Helper()
	stackRoom.Lock()
	stacks := strings.Split(string(stackRoom.buf[:runtime.Stack(stackRoom.buf[:], true)]), "\n\n")
	stackRoom.Unlock()
	own := bubbleNumber.FindString(stacks[0])
	if own == "" {
		t.Fatal("not in a bubble")
	}
	for _, stack := range stacks[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		client := strings.ReplaceAll(stack, serverFrames, "")
		if bubbleNumber.FindString(head) == own && ourFrames.MatchString(client) {
			found = append(found, stack)
		}
	}
	return found
}

// The check sees what it looks for.
func TestLeakCheck(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.connect("a")
		synctest.Wait()
		if n := len(clientStacks(r.T)); n < 3 {
			r.Errorf("%d goroutines of a client that is connected", n)
		}
		r.check(c.CloseContext(r.ctx))
		wantQuiet(r.T)
	})
}
