package simulation_test

import (
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

var (
	bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)
	ourFrames    = regexp.MustCompile(`docent/(client|recipes|retry|internal/(wire|seqqueue))\.|go-zookeeper/zk\.`)
)

// stackRoom is kept: new memory of this size costs more than the stacks.
var stackRoom struct {
	sync.Mutex
	buf [1 << 20]byte
}

// clientStacks returns the goroutines of clients in the caller's bubble.
func clientStacks(t *testing.T) (found []string) {
	t.Helper()
	stackRoom.Lock()
	n := runtime.Stack(stackRoom.buf[:], true)
	stacks := strings.Split(string(stackRoom.buf[:n]), "\n\n")
	stackRoom.Unlock()
	own := bubbleNumber.FindString(stacks[0])
	if own == "" || n == len(stackRoom.buf) {
		t.Fatal("not in a bubble, or too many goroutines")
	}
	for _, stack := range stacks[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbleNumber.FindString(head) == own && ourFrames.MatchString(stack) {
			found = append(found, stack)
		}
	}
	return found
}
