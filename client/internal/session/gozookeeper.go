package session

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/aside"
)

const (
	zkBuffer        = 1536 << 10 // that a zk.Conn makes for its requests
	requestOverhead = 4 << 10    // bytes of that buffer beside the largest request
)

// goZooKeeper is the session's zk.Conn and the life of its goroutines.
type goZooKeeper struct {
	conn    *zk.Conn
	started chan struct{} // closed when conn is set; go-zookeeper's goroutine runs before that
	parked  chan struct{} // closed when go-zookeeper's loops have ended after the end of the session
	unpark  chan struct{} // closed when go-zookeeper may find out that its Conn is closed
	drained chan struct{} // closed when go-zookeeper's last goroutine has ended
	park    *sync.Once
}

func newGoZooKeeper() goZooKeeper {
	return goZooKeeper{
		started: make(chan struct{}), parked: make(chan struct{}), unpark: make(chan struct{}), drained: make(chan struct{}),
		park: new(sync.Once),
	}
}

// Start starts the connection of the session. run runs the goroutine that ends when
// go-zookeeper's main goroutine does. After an error the session is over.
func (s *Session) Start(run func(f func())) error {
	silent := zk.WithLogInfo(false)
	buffer := silent
	// go-zookeeper makes its own buffer in any case. The option would leave that one as
	// garbage, and the next session would dirty its memory: half a MiB a session.
	if size := s.cfg.Link.MaxRequest + requestOverhead; size > zkBuffer {
		buffer = zk.WithMaxConnBufferSize(size)
	}
	conn, events, err := zk.Connect(s.cfg.Names, s.cfg.Link.SessionTimeout,
		zk.WithDialer(s.link.Dial),
		zk.WithHostProvider(hosts{s}),
		zk.WithLogger(debugLogger{s.cfg.Journal}),
		silent, buffer,
		zk.WithMaxBufferSize(s.cfg.Link.MaxReply),
	)
	if err != nil { // it refuses our own arguments
		s.link.End(err)
		return err
	}
	s.zoo.conn = conn
	close(s.zoo.started)
	run(func() {
		for range events { // the wire has seen them; only the end matters
		}
		close(s.zoo.drained)
		s.link.End(errConnClosed)
	})
	return nil
}

// hosts is go-zookeeper's view of the servers. go-zookeeper asks it for a server
// before each dial, and can be made to sleep 1 s between rounds. While the session
// lives hosts never asks for that pause, which pace replaces. Once the session is
// over hosts always asks for it: only there go-zookeeper notices that its Conn was
// closed.
type hosts struct{ s *Session }

func (h hosts) Init([]string) error { return nil }
func (h hosts) Len() int            { return h.s.cfg.Servers.Count() }
func (h hosts) Connected()          {}

func (h hosts) Next() (string, bool) {
	select {
	case <-h.s.link.Over():
		// Called by go-zookeeper's loop between connections: its sender and
		// receiver have ended.
		h.s.zoo.park.Do(func() { close(h.s.zoo.parked) })
		<-h.s.zoo.unpark
		return "", true
	default:
		return h.s.cfg.Servers.Pick(), false
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
