package proxy

// asked is a request that was forwarded and not yet answered.
type asked struct {
	Request
	rule *Rule
}

// pending finds the request that an answer belongs to. Pings and the like share
// fixed xids; those are answered in the order they were sent.
type pending struct {
	byXid    map[int32][]*asked
	ordinary int // how many of them make round trips
}

func newPending() pending { return pending{byXid: map[int32][]*asked{}} }

func (p *pending) add(a *asked) {
	p.byXid[a.Xid] = append(p.byXid[a.Xid], a)
	if ordinary(a.Op) {
		p.ordinary++
	}
}

// take returns the oldest request with this xid, nil if there is none.
func (p *pending) take(xid int32) *asked {
	queue := p.byXid[xid]
	if len(queue) == 0 {
		return nil
	}
	if len(queue) == 1 {
		delete(p.byXid, xid)
	} else {
		p.byXid[xid] = queue[1:]
	}
	if ordinary(queue[0].Op) {
		p.ordinary--
	}
	return queue[0]
}
