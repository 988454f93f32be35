package harness

import (
	"bytes"
	"strconv"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// Option changes how servers are started.
type Option func(*config)

// config is the image and what [zkcontainer.RunEnsemble] gets.
type config struct {
	image string
	opts  []testcontainers.ContainerCustomizer
}

// newConfig has zkcontainer's defaults: a tick of 500 ms, initLimit 20 and syncLimit 4. So
// the servers notice a lost leader in 2 s, and sessions may be as short as 1 s.
func newConfig(opts []Option) *config {
	c := &config{image: Image()}
	for _, o := range opts {
		o(c)
	}
	return c
}

func with(o zkcontainer.Option) Option {
	return func(c *config) { c.opts = append(c.opts, o) }
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
			WithProperty("minSessionTimeout", milliseconds(least))(c)
		}
		if greatest > 0 {
			WithProperty("maxSessionTimeout", milliseconds(greatest))(c)
		}
	}
}

// WithFourLetterWords sets the list of allowed four-letter words; default all. The
// harness itself needs srvr.
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
func WithHeap(mebibytes int) Option { return with(zkcontainer.WithHeap(mebibytes)) }

// WithProperty sets one line of zoo.cfg.
func WithProperty(key, value string) Option { return with(zkcontainer.WithProperty(key, value)) }

// WithSystemProperty sets one -D property of the server's virtual machine.
func WithSystemProperty(key, value string) Option {
	return with(zkcontainer.WithSystemProperty(key, value))
}

// WithFile puts a file into the container of every server, readable for everybody.
func WithFile(path string, content []byte) Option {
	return func(c *config) {
		c.opts = append(c.opts, testcontainers.CustomizeRequestOption(func(r *testcontainers.GenericContainerRequest) error {
			r.Files = append(r.Files, testcontainers.ContainerFile{Reader: bytes.NewReader(content), ContainerFilePath: path, FileMode: 0o644})
			return nil
		}))
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
