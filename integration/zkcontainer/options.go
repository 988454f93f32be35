package zkcontainer

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// Option is a setting of the servers. Options of testcontainers, such as
// testcontainers.WithEnv, can stand beside it in the same list.
type Option func(*settings) error

var _ testcontainers.ContainerCustomizer = Option(nil)

// Customize does nothing. It makes an Option fit into the list of options of
// testcontainers; [Run] and [RunEnsemble] look for Options there.
func (Option) Customize(*testcontainers.GenericContainerRequest) error { return nil }

// settings is what servers are started with. Properties go to zoo.cfg, system
// properties to the virtual machine: some of ZooKeeper's settings exist only there.
type settings struct {
	heapMiB    int
	startLimit time.Duration
	host       string
	properties map[string]string
	system     map[string]string
	chroot     string
	nodes      map[string][]byte
	users      map[string]string // of SASL, with their passwords
	super      string            // "super:password", or empty
	authority  bool              // the start makes the keys
	keys       func(id int) Keys // nil without TLS
}

// newSettings has the defaults. There is no fsync, since SIGKILL does not lose what the
// kernel has.
func newSettings(opts []testcontainers.ContainerCustomizer) (*settings, error) {
	s := &settings{
		heapMiB:    192,
		startLimit: 2 * time.Minute,
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
			"quorumListenOnAllIPs":   "true", // the network of the peers may be away
		},
		system: map[string]string{},
		nodes:  map[string][]byte{},
		users:  map[string]string{},
	}
	var errs []error
	for _, o := range opts {
		if own, ok := o.(Option); ok {
			errs = append(errs, own(s))
		}
	}
	return s, errors.Join(errs...)
}

// WithTickTime sets tickTime, ZooKeeper's unit of time, in whole milliseconds. Sessions
// may be as short as two ticks and expire on a tick. The default is 500 ms, a quarter
// of ZooKeeper's.
func WithTickTime(d time.Duration) Option {
	return func(s *settings) error {
		if d < time.Millisecond {
			return fmt.Errorf("tick time %v is shorter than a millisecond", d)
		}
		s.properties["tickTime"] = strconv.FormatInt(d.Milliseconds(), 10)
		return nil
	}
}

// WithProperty sets one line of zoo.cfg, over what this package sets. A backslash escapes
// what follows, as in every file of properties. The ports for clients cannot be changed:
// [Container.Addr] says where the engine publishes them. The four-letter word srvr must stay
// allowed, by which a start sees that the servers serve.
func WithProperty(key, value string) Option {
	return func(s *settings) error {
		escapes := len(value) - len(strings.TrimRight(value, `\`))
		if key == "" || strings.ContainsAny(key+value, "\r\n") || strings.Contains(key, "=") || escapes%2 != 0 {
			return fmt.Errorf("property %q=%q is not one line", key, value)
		}
		if port, fixed := map[string]int{"clientPort": clientPort, "secureClientPort": securePort}[key]; fixed && value != strconv.Itoa(port) {
			return fmt.Errorf("%s must stay %d: clients go to another port, which Addr and SecureAddr name", key, port)
		}
		if key == "4lw.commands.whitelist" && !slices.ContainsFunc(strings.Split(value, ","), allowsSrvr) {
			return fmt.Errorf("%s=%q does not allow srvr, by which a start sees that the servers serve", key, value)
		}
		s.properties[key] = value
		return nil
	}
}

func allowsSrvr(word string) bool {
	word = strings.TrimSpace(word)
	return word == "*" || word == "srvr"
}

// WithSystemProperty sets one -D property of the server's virtual machine, as
// zookeeper.extendedTypesEnabled for TTL nodes.
func WithSystemProperty(key, value string) Option {
	return func(s *settings) error {
		if key == "" || strings.Contains(key, "=") || strings.ContainsAny(key+value, " \t\r\n\"'*?[\\") {
			return fmt.Errorf("system property %q=%q is not one word", key, value)
		}
		s.system[key] = value
		return nil
	}
}

// WithHeap sets the greatest heap of each server in MiB; the default is 192.
func WithHeap(mebibytes int) Option {
	return func(s *settings) error {
		if mebibytes < 16 {
			return fmt.Errorf("a heap of %d MiB is too small", mebibytes)
		}
		s.heapMiB = mebibytes
		return nil
	}
}

// WithStartLimit bounds how long a start may take, besides the context; the default is
// two minutes. The time for pulling the image counts.
func WithStartLimit(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("start limit %v is not positive", d)
		}
		s.startLimit = d
		return nil
	}
}

// WithHost sets the host at which clients of this process reach the published ports.
// The default is what testcontainers finds, and TESTCONTAINERS_HOST_OVERRIDE changes
// that; if only 127.0.0.1 answers, it is that. For a loopback address the ports are published
// there alone, for "localhost" on 127.0.0.1, else on every address of the engine's machine.
// An IPv6 address has no brackets.
func WithHost(host string) Option {
	return func(s *settings) error {
		if host == "" || strings.ContainsAny(host, "/, []") || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return fmt.Errorf("host %q is not a name or address", host)
		}
		s.host = host
		return nil
	}
}

// WithChroot puts path, such as "/app", behind the addresses in every connection string.
// The node is created before the start returns, as ZooKeeper wants it there.
func WithChroot(path string) Option {
	return func(s *settings) error {
		s.chroot = path
		return checkPath(path)
	}
}

// WithInitData creates these nodes, and their missing parents, before the start returns.
// The keys are full paths; a chroot is not put before them. Everybody may do everything
// with the nodes. Calls add up. The start fails if the servers require a login by SASL.
func WithInitData(nodes map[string][]byte) Option {
	return func(s *settings) error {
		var errs []error
		for path := range nodes {
			errs = append(errs, checkPath(path))
		}
		maps.Copy(s.nodes, nodes)
		return errors.Join(errs...)
	}
}

func checkPath(path string) error {
	names := strings.Split(path, "/")
	wrong := func(name string) bool { return name == "" || name == "." || name == ".." }
	if len(names) < 2 || names[0] != "" || slices.ContainsFunc(names[1:], wrong) {
		return fmt.Errorf("%q is no path of a node below the root", path)
	}
	return nil
}

// loopback reports whether host is this machine alone.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
