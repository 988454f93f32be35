package client

import (
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/watches"
)

// OneShotWatch is a watch that fires once. All such watches of this client on the
// same path, of the same kind and in the same session, are one watch on the server.
// However many callers wait, they cost the server one watch.
type OneShotWatch struct {
	wait watches.Wait
	stop sync.Once
}

// Done is closed at the first of: a change of the node or its children, a
// reconnection, the end of the session. Read again in each case; a wake-up without a
// change is possible.
//
// A session can end while no server is reached. Then the next read waits for one by the
// retry policy. If the policy gives up by itself, the read fails with [ErrNotConnected],
// and the caller has no watch any more. A loop that shall go on reads by a policy that
// does not give up, see [Client.Retrying].
func (w *OneShotWatch) Done() <-chan struct{} { return w.wait.Done() }

// Event says what ended the watch once Done is closed. It returns the type of the
// server's event and nil. If no event ended the watch, it returns
// [zk.EventNotWatching] and the reason, which matches [ErrSessionLost] or [ErrClosed]
// when the session is over.
func (w *OneShotWatch) Event() (zk.EventType, error) { return w.wait.Event() }

// Stop says that the caller does not wait for the watch any more. It returns at once.
// If the watch has not fired a second after all callers that share it have stopped, the
// client removes it from the server in the background. A watch that its callers do not
// stop stays on the server until it fires or the session ends. Servers before ZooKeeper
// 3.5 cannot remove watches: there it stays too.
//
// A second call does nothing, and so does a call after the watch has fired or on a
// nil OneShotWatch. Done may never be closed after Stop.
func (w *OneShotWatch) Stop() {
	if w != nil {
		w.stop.Do(w.wait.Stop)
	}
}
