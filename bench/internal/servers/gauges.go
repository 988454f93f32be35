package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Gauges is the state of an ensemble of ZooKeeper servers at one moment.
type Gauges struct {
	Watches    int // of all servers
	Ephemerals int
	Zxid       int64 // of the newest transaction
}

// Gauges asks every server.
func (e *Ensemble) Gauges(ctx context.Context) (all Gauges, err error) {
	for _, addr := range e.Addrs {
		said, err := ask(ctx, addr, "mntr", "")
		if err != nil {
			return all, err
		}
		watches, err := field(said, "zk_watch_count\t")
		if err != nil {
			return all, err
		}
		ephemerals, err := field(said, "zk_ephemerals_count\t")
		if err != nil {
			return all, err
		}
		all.Watches += int(watches)
		all.Ephemerals = max(all.Ephemerals, int(ephemerals)) // each server has all of them
		if said, err = ask(ctx, addr, "srvr", ""); err != nil {
			return all, err
		}
		zxid, err := newest(said)
		if err != nil {
			return all, err
		}
		all.Zxid = max(all.Zxid, zxid)
	}
	return all, nil
}

// newest finds the transaction in the answer to srvr.
func newest(said string) (int64, error) {
	_, rest, ok := strings.Cut(said, "Zxid: 0x")
	if !ok {
		return 0, fmt.Errorf("no Zxid in %q", said)
	}
	number, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseInt(strings.TrimSpace(number), 16, 64)
}

var used = regexp.MustCompile(`(?m)^ (?:garbage-first heap|def new generation|tenured generation) .*used (\d+)K`)

// Heap is how many bytes of their heaps servers in Java use after a collection of garbage.
func (e *Ensemble) Heap(ctx context.Context) (int64, error) {
	var all int64
	for _, p := range e.processes {
		pid := strconv.Itoa(p.cmd.Process.Pid)
		for range 2 { // the first may find objects that wait to be finalised
			if said, err := exec.CommandContext(ctx, "jcmd", pid, "GC.run").CombinedOutput(); err != nil {
				return 0, missing("jcmd", fmt.Errorf("%w: %s", err, said), "default-jdk-headless")
			}
		}
		said, err := exec.CommandContext(ctx, "jcmd", pid, "GC.heap_info").Output()
		if err != nil {
			return 0, err
		}
		found := used.FindAllSubmatch(said, -1)
		if len(found) == 0 {
			return 0, errors.New("what is this heap: " + string(said))
		}
		for _, one := range found {
			kib, err := strconv.ParseInt(string(one[1]), 10, 64)
			if err != nil {
				return 0, err
			}
			all += kib << 10
		}
	}
	return all, nil
}
