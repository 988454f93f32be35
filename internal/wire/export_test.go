package wire

import (
	"net"

	"github.com/docent-go/docent/internal/clock"
	"github.com/docent-go/docent/internal/zoodefs"
)

// Pending is how many requests the live connection remembers as sent and not
// answered, and how many wait to be written.
func Pending(l *Link) (sent, queued int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live == nil {
		return 0, 0
	}
	return len(l.live.sent), len(l.live.queue)
}

// Backlog is how many bytes the live connection believes to be on their way to
// the server.
func Backlog(l *Link) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live.handed - l.live.acked
}

// CountXids makes the live connection go on as if it had sent n exchanges.
func CountXids(l *Link, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live.xids = uint32(n)
}

// TakeForSocket makes the live connection count as one of a kernel.
func TakeForSocket(l *Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live.inline = true
}

// OwnXid reports whether a reply with that xid would be an exchange's.
func OwnXid(xid int32) bool { return ownXid(xid) }

// WritesInline reports whether callers may write to nc by themselves.
func WritesInline(nc net.Conn) bool { return buffers(nc) }

// Encode returns the body of r.
func Encode(r Request) []byte { return r.append(nil) }

// Decode reads the body of a successful reply to op.
func Decode(op Op, body []byte) (Reply, error) {
	var r Reply
	err := r.decode(op, body)
	return r, err
}

// CloseOp is the request that [Link.CloseSession] sends.
const CloseOp = zoodefs.OpCloseSession

// Evidence is when the newest answered request was sent.
func (l *Link) Evidence() clock.Stamp {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.evidence
}

// DecodeEvent reads the body of a notification.
var DecodeEvent = decodeEvent
