package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// stopSelf stops this process until another one lets it go on. The thread that
// calls may run on for a moment before the whole process stops, so it waits
// until it has been let go on.
func stopSelf() error {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	<-resumed
	return nil
}

func goOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// stopped reports whether p is stopped; an error says that it has ended.
func stopped(p *os.Process) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		return false, err
	}
	// The state stands behind the name, which may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	switch string(fields[0]) {
	case "T":
		return true, nil
	case "Z":
		return false, fmt.Errorf("process %d has ended", p.Pid)
	}
	return false, nil
}
