package simulation_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var (
	bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)
	ourFrames    = regexp.MustCompile(`docent/(client|recipes|retry|internal/(wire|seqqueue))\.|go-zookeeper/zk\.`)
)

// clientStacks returns the goroutines of clients in the caller's bubble.
func clientStacks(t *testing.T) (found []string) {
	t.Helper()
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	stacks := strings.Split(string(buf[:n]), "\n\n")
	own := bubbleNumber.FindString(stacks[0])
	if own == "" || n == len(buf) {
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
