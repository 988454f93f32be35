//go:build unix && !linux

package child

import "syscall"

func withParent(*syscall.SysProcAttr) {} // only Linux can do it

func adopt() {} // init does it
