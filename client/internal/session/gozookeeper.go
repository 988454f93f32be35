package session

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/aside"
	"github.com/docent-go/docent/client/internal/where"
	"github.com/docent-go/docent/internal/wire"
)

const (
	zkBuffer        = 1536 << 10 // that a zk.Conn makes for its requests
	requestOverhead = 4 << 10    // bytes of that buffer beside the largest request
)

// goZooKeeper is a zk.Conn and the life of its goroutines.
type goZooKeeper struct {
	link    *wire.Link
	servers *where.Servers
	journal *aside.Journal

	conn    *zk.Conn
	events  <-chan zk.Event
	started chan struct{} // closed when conn is set; go-zookeeper's goroutine runs before that
	parked  chan struct{} // closed when go-zookeeper's loops have ended after the end of the session
	unpark  chan struct{} // closed when go-zookeeper may find out that its Conn is closed
	drained chan struct{} // closed when go-zookeeper's last goroutine has ended
	park    sync.Once
}

func newGoZooKeeper(link *wire.Link, servers *where.Servers, journal *aside.Journal) *goZooKeeper {
	return &goZooKeeper{
		link: link, servers: servers, journal: journal,
		started: make(chan struct{}), parked: make(chan struct{}), unpark: make(chan struct{}), drained: make(chan struct{}),
	}
}

// connect starts the connection to the servers with these names.
func (z *goZooKeeper) connect(names []string, cfg wire.Config) (err error) {
	silent := zk.WithLogInfo(false)
	buffer := silent
	// go-zookeeper makes its own buffer in any case. The option would leave that one as
	// garbage, and the next session would dirty its memory: half a MiB a session.
	if size := cfg.MaxRequest + requestOverhead; size > zkBuffer {
		buffer = zk.WithMaxConnBufferSize(size)
	}
	z.conn, z.events, err = zk.Connect(names, cfg.SessionTimeout,
		zk.WithDialer(z.link.Dial),
		zk.WithHostProvider(hosts{z}),
		zk.WithLogger(debugLogger{z.journal}),
		silent, buffer,
		zk.WithMaxBufferSize(cfg.MaxReply),
	)
	if err == nil {
		close(z.started)
	}
	return err
}

// drain returns when go-zookeeper's main goroutine has ended.
func (z *goZooKeeper) drain() {
	for range z.events { // the wire has seen them; only the end matters
	}
	close(z.drained)
}

// hosts is go-zookeeper's view of the servers. go-zookeeper asks it for a server
// before each dial, and can be made to sleep 1 s between rounds. While the session
// lives hosts never asks for that pause, which where.Servers.Pace replaces. Once the session is
// over hosts always asks for it: only there go-zookeeper notices that its Conn was
// closed.
type hosts struct{ z *goZooKeeper }

func (h hosts) Init([]string) error { return nil }
func (h hosts) Len() int            { return h.z.servers.Count() }
func (h hosts) Connected()          {}

func (h hosts) Next() (string, bool) {
	select {
	case <-h.z.link.Over():
		// Called by go-zookeeper's loop between connections: its sender and
		// receiver have ended.
		h.z.park.Do(func() { close(h.z.parked) })
		<-h.z.unpark
		return "", true
	default:
		return h.z.servers.Pick(), false
	}
}

// dispose closes the zk.Conn of a session that is over. go-zookeeper's Close comes last, when
// its receiver has ended. Close fails the requests of users of Conn; CreateContainer and
// CreateTTL then read a reply that the receiver may still be decoding.
func (z *goZooKeeper) dispose() {
	select {
	case <-z.parked:
	case <-z.drained:
	}
	closed := make(chan struct{})
	go func() { // ends within a second, as Close does
		z.conn.Close()
		close(closed)
	}()
	// Close does two things. It notes that the Conn is closed, and it sends a request
	// and waits up to a second for the answer. The loop is held in Next, so no answer
	// comes. Sync returns when the Conn counts as closed. A millisecond later the
	// request is queued. Then the loop goes on, drops the request, and ends.
	_, _ = z.conn.Sync("/")
	t := time.NewTimer(time.Millisecond)
	<-t.C
	close(z.unpark)
	<-z.drained
	<-closed
}

// debugLogger logs the lines of go-zookeeper at the debug level. Everything that
// matters in them is also a state change or the error of an operation.
type debugLogger struct{ journal *aside.Journal }

func (d debugLogger) Printf(format string, args ...any) {
	d.journal.Say(slog.LevelDebug, "zookeeper: "+fmt.Sprintf(format, args...))
}
