package zkserver_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// side is one of the two servers under comparison.
type side struct {
	addr     string
	clients  [2]*raw
	sessions map[int64]string // id to a name that both sides share
	made     int
	zxid     int64 // of the first answer; others are told relative to it
	// anyOrder is set while a session ends: its ephemerals go in the order of
	// a hash table.
	anyOrder bool
}

func (sd *side) dial(tb testing.TB) *raw {
	tb.Helper()
	c, err := net.DialTimeout("tcp", sd.addr, 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &raw{Conn: c}
}

// open starts a new session for a client.
func (sd *side) open(tb testing.TB, who int) {
	tb.Helper()
	c := sd.dial(tb)
	if err := c.handshake(0, 30_000, 0, make([]byte, 16)); err != nil {
		tb.Fatalf("%s: handshake: %v", sd.addr, err)
	}
	sd.made++
	sd.sessions[c.session] = "s" + strconv.Itoa(sd.made)
	sd.clients[who] = c
}

func (sd *side) close(tb testing.TB) {
	tb.Helper()
	for _, c := range sd.clients {
		if c == nil {
			continue
		}
		if _, _, err := c.call(-11, nil); err != nil {
			sd.end(tb, c)
		}
		_ = c.Close()
	}
}

// perform does a step and returns what could be seen of it.
func (sd *side) perform(tb testing.TB, s step) string {
	tb.Helper()
	c := sd.clients[s.who]
	// These may end a session.
	sd.anyOrder = s.op < 0 || s.op == 77 || s.op == 100 || s.op == 102
	switch s.op {
	case stepReconnect, stepReattachAlive:
		return sd.reattach(tb, s, c.password, 0)
	case stepBadPassword:
		return sd.reattach(tb, s, []byte("0123456789abcdef"), 0)
	case stepBatch:
		return sd.together(s)
	case stepLogin:
		out := sd.logIn(s)
		return out + sd.renew(tb, s)
	case stepFuture:
		return sd.reattach(tb, s, c.password, 1<<60)
	case stepCloseAndNew:
		a, events, err := c.call(-11, nil)
		_, after := c.readFrame()
		_ = c.Close()
		sd.open(tb, s.who)
		return sd.show(-11, a, events, err) + fmt.Sprint(" then ", kindOfError(after))
	}
	a, events, err := c.call(s.op, s.payload)
	out := sd.show(s.op, a, events, err)
	if s.op == -11 || err != nil || s.op == 77 || (s.op == 100 || s.op == 102) && a.err != 0 {
		if err == nil {
			_, err = c.readFrame()
			out += " then " + kindOfError(err)
		}
		_ = c.Close()
		if s.op != -11 {
			sd.end(tb, c)
		}
		sd.open(tb, s.who)
	}
	return out
}

// together sends a batch in one write and shows all answers and events in the
// order in which they come.
func (sd *side) together(s step) string {
	c := sd.clients[s.who]
	sd.anyOrder = false
	var frames []byte
	ops := map[int32]int32{}
	for _, b := range s.batch {
		c.xid++
		ops[c.xid] = b.op
		p := append(body(c.xid, b.op), b.payload...)
		frames = append(frames, append(body(int32(len(p))), p...)...)
	}
	if _, err := c.Write(frames); err != nil {
		return kindOfError(err)
	}
	var out strings.Builder
	for n := 0; n < len(s.batch); {
		a, err := c.receive()
		switch {
		case err != nil:
			return out.String() + " " + kindOfError(err)
		case a.xid == -1:
			out.WriteString(sd.showEvents([]answer{a}))
			continue
		case a.xid == -2:
			out.WriteString(sd.show(11, a, nil, nil))
		default:
			fmt.Fprintf(&out, " %d:%s", a.xid, sd.show(ops[a.xid], a, nil, nil))
		}
		n++
	}
	return out.String()
}

// end closes the session of a connection that is gone. Left alone it would
// end at a time of its own and take a zxid then.
func (sd *side) end(tb testing.TB, old *raw) {
	tb.Helper()
	for range 5 {
		c := sd.dial(tb)
		err := c.handshake(0, 30_000, old.session, old.password)
		if err == nil {
			_, _, err = c.call(-11, nil)
		}
		_ = c.Close()
		if err == nil || errors.Is(err, errRefused) {
			return
		}
	}
	tb.Errorf("%s: session %#x cannot be closed", sd.addr, old.session)
}

// reattach comes back to the session over a new connection, if the server
// lets it, and opens a new session otherwise.
func (sd *side) reattach(tb testing.TB, s step, password []byte, zxid int64) string {
	tb.Helper()
	old := sd.clients[s.who]
	if s.op != stepReattachAlive && s.op != stepBadPassword {
		hangUp(tb, old)
	}
	c := sd.dial(tb)
	err := c.handshake(zxid, 25_000, old.session, password)
	out := fmt.Sprint("reattach ", kindOfError(err), " timeout ", c.timeout)
	if s.op == stepReattachAlive || s.op == stepBadPassword {
		_, oldErr := old.readFrame()
		out += " old " + kindOfError(oldErr)
		_ = old.Close()
	}
	if err == nil {
		sd.clients[s.who] = c
		return out
	}
	_, after := c.readFrame()
	out += " then " + kindOfError(after)
	_ = c.Close()
	sd.end(tb, old)
	sd.open(tb, s.who)
	return out
}

func kindOfError(err error) string {
	var ne net.Error
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errRefused):
		return "refused"
	case errors.As(err, &ne) && ne.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "reset"):
		return "closed"
	default:
		return err.Error()
	}
}

// hangUp closes a connection and returns when the server has noticed. The real
// server may hear of the end of an older connection after the session has come
// back over another. It then forgets the newer connection, which would stay open
// beside a third.
func hangUp(tb testing.TB, c *raw) {
	tb.Helper()
	closeWrite(tb, c)
	for {
		if _, err := c.readFrame(); err != nil {
			if kindOfError(err) != "closed" {
				tb.Errorf("after hanging up: %v", err)
			}
			break
		}
	}
	_ = c.Close()
}

// closeWrite ends the client's half of a connection over TCP.
func closeWrite(tb testing.TB, c *raw) {
	tb.Helper()
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok {
		tb.Fatalf("%T has no halves", c.Conn)
	}
	if err := tcp.CloseWrite(); err != nil {
		tb.Fatal(err)
	}
}

// fence collects the events of the other client.
func (sd *side) fence(who int) string {
	a, events, err := sd.clients[who].call(3, body("/", false))
	if err != nil {
		return sd.showEvents(events) + kindOfError(err)
	}
	return fmt.Sprint(sd.showEvents(events), a.err)
}

// abandon makes a client leave its session, which owns the node that the other
// client watches, to expire after the shortest timeout.
func (sd *side) abandon(t *testing.T, who int, node string) {
	t.Helper()
	old := sd.clients[who]
	must(t, old, 1, ephemeral(node), 0)
	must(t, sd.clients[1-who], 4, body(node, true), 0)
	hangUp(t, old)
	c := sd.dial(t)
	if err := c.handshake(0, 0, old.session, old.password); err != nil {
		t.Fatalf("%s: reattach to %#x: %v", sd.addr, old.session, err)
	}
	hangUp(t, c)
}

// expiry waits for the end of an abandoned session, returns what the other client
// could see of it, and opens a new session.
func (sd *side) expiry(tb testing.TB, who int) string {
	tb.Helper()
	sd.anyOrder = true
	first, err := sd.clients[1-who].receive()
	if err != nil {
		return kindOfError(err)
	}
	a, rest, err := sd.clients[1-who].call(3, body("/", false))
	out := sd.show(3, a, append(rest, first), err)
	sd.open(tb, who)
	return out
}

// prepare opens both clients and fixes the origin of zxids.
func (sd *side) prepare(tb testing.TB, base string) {
	tb.Helper()
	sd.sessions = map[int64]string{0: "-"}
	sd.open(tb, 0)
	sd.open(tb, 1)
	// Two levels, so that the counter of the root stays out of it.
	for _, path := range []string{base[:strings.LastIndexByte(base, '/')], base} {
		a, _, err := sd.clients[0].call(1, body(path, []byte{}, openACL, int32(0)))
		if err != nil || a.err != 0 {
			tb.Fatalf("%s: create %s: %v, code %d", sd.addr, path, err, a.err)
		}
		sd.zxid = a.zxid
	}
}

// renew opens a new session for a client if the server has closed the connection. It
// returns what became of the old one.
func (sd *side) renew(tb testing.TB, s step) string {
	tb.Helper()
	c := sd.clients[s.who]
	a, events, err := c.call(11, nil)
	if err == nil {
		return " and goes on" + sd.show(11, a, events, nil)
	}
	_ = c.Close()
	sd.end(tb, c)
	sd.open(tb, s.who)
	return " and is over"
}
