package run

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is where and when a run took place.
type Machine struct {
	Processors int       `json:"processors"`
	Model      string    `json:"model"`
	Kernel     string    `json:"kernel"`
	Memory     string    `json:"memory"`
	Disk       string    `json:"disk"` // the file system of the servers' data
	Go         string    `json:"go"`
	Revision   string    `json:"revision"` // of this repository
	Begin      time.Time `json:"begin"`
	Minutes    float64   `json:"minutes"`
	// Others is the part of the machine's processor time that other programs have
	// used: neither this program nor what it started.
	Others float64 `json:"others"`
}

// Watcher knows what the machine had done before.
type Watcher struct {
	m     Machine
	ticks float64
	own   time.Duration
}

// Watch begins to watch the machine, on which dir is for the data of servers.
func Watch(dir string) (*Watcher, error) {
	ticks, err := busy()
	if err != nil {
		return nil, err
	}
	return &Watcher{ticks: ticks, own: own(), m: Machine{
		Processors: runtime.NumCPU(),
		Model:      line("/proc/cpuinfo", "model name"),
		Kernel:     strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		Memory:     line("/proc/meminfo", "MemTotal"),
		Disk:       disk(dir),
		Go:         runtime.Version(),
		Revision:   revision(),
		Begin:      time.Now().UTC().Truncate(time.Second),
	}}, nil
}

// Done is the machine at the end of the run, when every child was waited for.
func (w *Watcher) Done() Machine {
	m := w.m
	span := time.Since(m.Begin)
	m.Minutes = span.Minutes()
	if ticks, err := busy(); err == nil {
		const perSecond = 100
		others := (ticks-w.ticks)/perSecond - (own() - w.own).Seconds()
		m.Others = max(0, others/(span.Seconds()*float64(m.Processors)))
	}
	return m
}

// busy is the processor time of all programs, in ticks.
func busy() (float64, error) {
	const user, nice, system, irq, soft, steal = 1, 2, 3, 6, 7, 8
	first, _, _ := strings.Cut(read("/proc/stat"), "\n")
	fields := strings.Fields(first)
	if len(fields) <= steal {
		return 0, fmt.Errorf("not /proc/stat: %q", first)
	}
	var all float64
	for _, i := range []int{user, nice, system, irq, soft, steal} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}

// own is the processor time of this process and of its children that have ended.
func own() time.Duration {
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return all
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}

// line is the value of a key in a file of /proc.
func line(path, key string) string {
	for l := range strings.Lines(read(path)) {
		if rest, ok := strings.CutPrefix(l, key); ok {
			return strings.Join(strings.Fields(strings.TrimLeft(rest, " \t:")), " ")
		}
	}
	return "unknown"
}

// disk names the file system of a directory.
func disk(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown"
	}
	names := map[int64]string{0xEF53: "ext4", 0x01021994: "tmpfs (fsync costs nothing here)", 0x9123683E: "btrfs", 0x58465342: "xfs", 0x794C7630: "overlayfs"}
	if name, ok := names[int64(s.Type)]; ok { //nolint:unconvert // its type differs between architectures
		return name
	}
	return fmt.Sprintf("file system %#x", s.Type)
}

// modules names the clients that are built in.
func modules() []string {
	names := map[string]string{
		"github.com/go-zookeeper/zk": "go-zookeeper", "go.etcd.io/etcd/client/v3": "etcd's client",
		"github.com/go-redsync/redsync/v4": "redsync", "github.com/redis/go-redis/v9": "go-redis",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []string
	for _, m := range info.Deps {
		if name := names[m.Path]; name != "" {
			all = append(all, name+" "+m.Version)
		}
	}
	return all
}

// revision names the commit that is measured, if git knows.
func revision() string {
	said, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(said))
}
