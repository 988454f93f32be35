package ui

import (
	"time"

	"github.com/docent-go/docent/client"
)

// The states of what a page shows.
const (
	isLive       = "live"       // everything was read, and changes are told
	isReading    = "reading"    // much is yet to be read
	isLate       = "late"       // the server lets an answer wait
	isLost       = "lost"       // there is no connection
	isConnecting = "connecting" // there was none yet, or none since somebody looks again
)

// status is what a page says of its picture.
type status struct {
	State    string `json:"state"`
	Since    int64  `json:"since"` // of lost, late and connecting
	Now      int64  `json:"now"`
	AsOf     int64  `json:"asof"`   // what is shown is no older, 0 if nothing is
	Detail   string `json:"detail"` // why there is no connection
	Server   string `json:"server"`
	Product  string `json:"product"`
	Left     int    `json:"left"` // parts of nodes to be read
	Nodes    int    `json:"nodes"`
	Locks    int    `json:"locks"`
	Full     bool   `json:"full"` // there are more nodes than are shown
	Requests int64  `json:"requests"`
	Top      string `json:"top"`
	Actions  bool   `json:"actions"`
}

// status says how the picture of now is.
func (k *collector) status(now time.Time) status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := status{
		State: isLive, Now: ms(now), AsOf: ms(k.heard), Left: k.m.reads.left(), Nodes: k.m.tree.count,
		Locks: len(k.m.locks), Full: k.m.full, Requests: k.count, Top: k.m.tree.top,
	}
	contact := contactOf(k.c)
	switch {
	case !contact.connected && (k.heard.IsZero() || k.fresh):
		s.State, s.Since = isConnecting, ms(contact.since)
	case !contact.connected:
		s.State, s.Since = isLost, ms(contact.since)
	case !k.sent.IsZero() && now.Sub(k.sent) >= overdue:
		s.State, s.Since = isLate, ms(k.sent)
	case k.fresh && !k.heard.IsZero(): // the model is that of the last time
		s.State, s.Since = isConnecting, ms(k.failed)
	case k.m.behind(), k.m.undrawn():
		s.State = isReading
	}
	if !contact.connected {
		s.Detail = shown(contact.why(k.failure), mostPath)
		if s.Since == 0 {
			s.Since = ms(k.failed)
		}
		return s
	}
	if k.failure != nil {
		s.State, s.Since, s.Detail = isLost, ms(k.failed), shown(k.failure.Error(), mostPath)
		if k.fresh {
			s.State = isConnecting
		}
	}
	s.Server, s.Product = k.c.Conn().Server(), k.c.Product()
	return s
}

// contact is how a client is connected.
type contact struct {
	connected bool
	since     time.Time
	err       error
}

func contactOf(c *client.Client) contact {
	if c == nil {
		return contact{}
	}
	now := inner.Contact(c)
	return contact{now.Connected, now.Since, now.Err}
}

func (c contact) why(other error) string {
	switch {
	case c.err != nil:
		return c.err.Error()
	case other != nil:
		return other.Error()
	}
	return ""
}
