package lease_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// shiftWallClock sets the wall clock of this process, not of the machine, to that
// much more than the machine's. Go reads its clocks through the vDSO, a library
// that the kernel maps into every process and no preloaded one can replace. So
// shiftWallClock overwrites its clock_gettime, in this process's own copy. The
// monotonic clock is left alone.
func shiftWallClock(by time.Duration) error {
	at, err := vdsoFunction("__vdso_clock_gettime")
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = mem.Close() }()
	_, err = mem.WriteAt(clockGettime(int32(by/time.Second)), at)
	return err
}

// clockGettime is clock_gettime(2) as machine code, with some seconds added to
// CLOCK_REALTIME.
func clockGettime(seconds int32) []byte {
	code := []byte{
		0xb8, 228, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
		0x75, 0x07, // jne ret
		0x48, 0x81, 0x06, // add qword [rsi], seconds
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(seconds))
	return append(code, 0xc3) // ret
}

// vdsoFunction returns the address of a function of the vDSO.
func vdsoFunction(name string) (int64, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if !strings.Contains(line, "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return 0, err
		}
		image := make([]byte, to-from)
		mem, err := os.Open("/proc/self/mem")
		if err != nil {
			return 0, err
		}
		defer func() { _ = mem.Close() }()
		if _, err := mem.ReadAt(image, from); err != nil {
			return 0, err
		}
		f, err := elf.NewFile(bytes.NewReader(image))
		if err != nil {
			return 0, err
		}
		symbols, err := f.DynamicSymbols()
		if err != nil {
			return 0, err
		}
		for _, s := range symbols {
			if s.Name == name {
				return from + int64(s.Value), nil
			}
		}
	}
	return 0, errors.New("the vDSO has no " + name)
}
