package harness

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option changes how servers are started.
type Option func(*config)

// config is what a server is started with. Properties go to zoo.cfg, system
// properties to the virtual machine: some of ZooKeeper's settings exist only there.
type config struct {
	image      string
	heapMiB    int
	properties map[string]string
	system     map[string]string
	keys       func(id int) Keys // nil without TLS
}

// newConfig has the harness's defaults. A tick is 500 ms, initLimit 20 and
// syncLimit 4. So the servers notice a lost leader in 2 s, and sessions may be as
// short as 1 s. Every four-letter word is allowed. There is no fsync, since SIGKILL
// does not lose what the kernel has.
func newConfig(opts []Option) *config {
	c := &config{
		image:   Image(),
		heapMiB: 192,
		properties: map[string]string{
			"tickTime":               "500",
			"initLimit":              "20",
			"syncLimit":              "4",
			"dataDir":                "/data",
			"clientPort":             strconv.Itoa(clientPort),
			"maxClientCnxns":         "0",
			"4lw.commands.whitelist": "*",
			"admin.enableServer":     "false",
			"forceSync":              "no",
			"preAllocSize":           "1024",
			"reconfigEnabled":        "true",
			"standaloneEnabled":      "true",
		},
		system: map[string]string{},
	}
	for _, o := range opts {
		o(c)
	}
	return c
}

// WithImage uses this image instead of [Image].
func WithImage(ref string) Option { return func(c *config) { c.image = ref } }

// WithTickTime sets tickTime, ZooKeeper's unit of time; sessions may be as short as
// two ticks and expire on a tick. The default is 500 ms.
func WithTickTime(d time.Duration) Option {
	return WithProperty("tickTime", milliseconds(d))
}

// WithInitLimit sets how many ticks a follower may take to connect and sync; default 20.
func WithInitLimit(ticks int) Option { return WithProperty("initLimit", strconv.Itoa(ticks)) }

// WithSyncLimit sets after how many ticks of silence leader and follower give each
// other up; default 4.
func WithSyncLimit(ticks int) Option { return WithProperty("syncLimit", strconv.Itoa(ticks)) }

// WithSessionTimeouts bounds the session timeouts that the servers negotiate. A zero
// bound leaves ZooKeeper's own: 2 and 20 ticks.
func WithSessionTimeouts(least, greatest time.Duration) Option {
	return func(c *config) {
		if least > 0 {
			c.properties["minSessionTimeout"] = milliseconds(least)
		}
		if greatest > 0 {
			c.properties["maxSessionTimeout"] = milliseconds(greatest)
		}
	}
}

// WithFourLetterWords sets the list of allowed four-letter words; default all. The
// harness itself needs srvr and ruok.
func WithFourLetterWords(list string) Option {
	return WithProperty("4lw.commands.whitelist", list)
}

// WithExtendedTypes allows TTL nodes.
func WithExtendedTypes() Option { return WithSystemProperty("zookeeper.extendedTypesEnabled", "true") }

// WithContainerInterval sets how often empty containers and stale TTL nodes are swept;
// ZooKeeper's default is one minute.
func WithContainerInterval(d time.Duration) Option {
	return WithSystemProperty("znode.container.checkIntervalMs", milliseconds(d))
}

// WithMaxBuffer sets jute.maxbuffer, the largest request in bytes.
func WithMaxBuffer(bytes int) Option {
	return WithSystemProperty("jute.maxbuffer", strconv.Itoa(bytes))
}

// WithFsync makes servers sync each transaction to disk before they acknowledge it.
func WithFsync() Option { return WithProperty("forceSync", "yes") }

// WithHeap sets the heap of each server in MiB; default 192.
func WithHeap(mebibytes int) Option { return func(c *config) { c.heapMiB = mebibytes } }

// WithProperty sets one line of zoo.cfg.
func WithProperty(key, value string) Option {
	return func(c *config) { c.properties[key] = value }
}

// WithSystemProperty sets one -D property of the server's virtual machine.
func WithSystemProperty(key, value string) Option {
	return func(c *config) { c.system[key] = value }
}

// zooCfg is the text of zoo.cfg. A single server is standalone: no server lines.
func (c *config) zooCfg(ips []string) []byte {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.properties)) {
		fmt.Fprintf(&b, "%s=%s\n", k, c.properties[k])
	}
	if len(ips) > 1 {
		for i, ip := range ips {
			fmt.Fprintf(&b, "server.%d=%s:2888:3888\n", i+1, ip)
		}
	}
	return []byte(b.String())
}

// jvmFlags are the flags of the server's virtual machine: small and quick to start,
// since tests start many and each lives for seconds.
func (c *config) jvmFlags() string {
	flags := []string{
		fmt.Sprintf("-Xmx%dm", c.heapMiB),
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
	}
	for _, k := range slices.Sorted(maps.Keys(c.system)) {
		flags = append(flags, "-D"+k+"="+c.system[k])
	}
	return strings.Join(flags, " ")
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
