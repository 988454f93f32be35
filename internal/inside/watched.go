package inside

import "github.com/go-zookeeper/zk"

// Watched is a node that was read, with the watch that the read has left.
type Watched struct {
	Data  []byte
	Stat  *zk.Stat
	Watch OneShot // nil beside an error
	Err   error   // matches client.ErrNoNode or client.ErrNoAuth, or is nil
}

// OneShot is a client.OneShotWatch.
type OneShot interface {
	Done() <-chan struct{}
	Event() (zk.EventType, error)
	Stop()
}
