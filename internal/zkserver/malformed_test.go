package zkserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// frame is p behind its length.
func frame(p []byte) []byte { return append(body(int32(len(p))), p...) }

// requestFrame is a request with the xid 7.
func requestFrame(op int32, payload []byte) []byte {
	return frame(append(body(int32(7), op), payload...))
}

// malformed is what a client must not send, and what the real server does about
// it. The latter is the codes of its replies, then whether it closes the
// connection or still answers a ping.
type malformed struct {
	name  string
	bytes []byte
	want  string
}

// malformedFirst is sent instead of a handshake.
func malformedFirst() []malformed {
	connect := func(password ...any) []byte {
		return append(body(int32(0), int64(0), int32(9000), int64(0)), body(password...)...)
	}
	return []malformed{
		{"length 0", body(int32(0)), "closed"},
		{"length 3", []byte{0, 0, 0, 3, 1, 2, 3}, "closed"},
		{"length -1", body(int32(-1)), "closed"},
		{"length -2^31", body(int32(-1 << 31)), "closed"},
		{"length 2^31-1", body(int32(1<<31 - 1)), "closed"},
		{"length just above the limit", body(int32(1 << 20)), "closed"},
		{"unknown word", []byte("abcd"), "closed"},
		{"garbage", frame([]byte("0123456789")), "closed"},
		{"garbage of the right length", frame([]byte(strings.Repeat("x", 45))), "closed"},
		{"request", requestFrame(4, body("/", false)), "closed"},
		{"no password", frame(connect()), "closed"},
		{"null password", frame(connect(null{}, false)), "session pong"},
		{"password of length -2", frame(connect(int32(-2), false)), "closed"},
		{"password longer than the frame", frame(connect(int32(17), int64(0), int64(0))), "closed"},
		{"password of length 2^31-1", frame(connect(int32(1<<31-1), false)), "closed"},
		{"short password", frame(connect([]byte("x"), false)), "session pong"},
		{"no read-only byte", frame(connect(make([]byte, 16))), "session pong"},
		{"more than a handshake", frame(connect(make([]byte, 16), false, int64(5))), "session pong"},
		{"protocol version -1", frame(append(body(int32(-1)), connect(make([]byte, 16), false)[4:]...)), "session pong"},
		{"zxid -1", frame(body(int32(0), int64(-1), int32(9000), int64(0), make([]byte, 16), false)), "session pong"},
		{"unknown session", frame(body(int32(0), int64(0), int32(9000), int64(99), make([]byte, 16), false)), "refused"},
		{"request before the answer", append(frame(connect(make([]byte, 16), false)), requestFrame(77, nil)...), "session -6 closed"},
	}
}

// malformedLater is sent in a session.
func malformedLater() []malformed {
	path := func(n int32) []byte { return body(n, int32(0)) }
	var e enc
	for range 1000 {
		e.Write(requestFrame(3, body("/", false)))
	}
	return []malformed{
		{"length 0", body(int32(0)), "closed"},
		{"length 3", []byte{0, 0, 0, 3, 1, 2, 3}, "closed"},
		{"length 4", frame(body(int32(7))), "closed"},
		{"length 7", frame([]byte{0, 0, 0, 7, 0, 0, 0}), "closed"},
		{"length -1", body(int32(-1)), "closed"},
		{"length 2^31-1", body(int32(1<<31 - 1)), "closed"},
		{"length just above the limit", body(int32(1 << 20)), "closed"},
		{"word", []byte("ruok"), "closed"},
		{"second handshake", frame(body(int32(0), int64(0), int32(9000), int64(0), make([]byte, 16), false)), "-6 closed"},
		{"op 0", requestFrame(0, nil), "-6 closed"},
		{"op -1", requestFrame(-1, nil), "-6 closed"},
		{"op -12", requestFrame(-12, nil), "-6 closed"},
		{"op 10", requestFrame(10, nil), "-6 closed"},
		{"op 23", requestFrame(23, nil), "-6 closed"},
		{"op 77", requestFrame(77, nil), "-6 closed"},
		{"op 2^31-1", requestFrame(1<<31-1, nil), "-6 closed"},
		{"xid -1", frame(body(int32(-1), int32(3), "/", false)), "0 pong"},
		{"xid -4", frame(body(int32(-4), int32(3), "/", false)), "0 pong"},
		{"get without a body", requestFrame(4, nil), "-5 pong"},
		{"get without the watch", requestFrame(4, body("/")), "-5 pong"},
		{"get with more", requestFrame(4, body("/", false, int64(1))), "0 pong"},
		{"get of a null path", requestFrame(4, body(null{}, false)), "-5 pong"},
		{"get, path of length -2", requestFrame(4, path(-2)), "-5 pong"},
		{"get, path of length -2^31", requestFrame(4, path(-1<<31)), "-5 pong"},
		{"get, path of length 2^31-1", requestFrame(4, path(1<<31-1)), "-5 pong"},
		{"get, path beyond the frame", requestFrame(4, path(9)), "-5 pong"},
		{"get, watch is 7", requestFrame(4, append(body("/"), 7)), "0 pong"},
		{"exists, path is not UTF-8", requestFrame(3, body("/\xff\xfe", false)), "-101 pong"},
		{"create without a body", requestFrame(1, nil), "-5 pong"},
		{"create without flags", requestFrame(1, body("/m", []byte{}, openACL)), "-5 pong"},
		{"create, data of length -2", requestFrame(1, body("/m", int32(-2), openACL, int32(0))), "-5 pong"},
		{"create, data of length 2^31-1", requestFrame(1, body("/m", int32(1<<31-1), openACL, int32(0))), "-5 pong"},
		{"create, -2 entries", requestFrame(1, body("/m", []byte{}, int32(-2), int32(0))), "-114 pong"},
		{"create, 2^31-1 entries", requestFrame(1, body("/m", []byte{}, int32(1<<31-1), int32(0))), "-5 pong"},
		{"create2 without a body", requestFrame(15, nil), "-5 pong"},
		{"delete without a version", requestFrame(2, body("/m")), "-5 pong"},
		{"setData without a body", requestFrame(5, nil), "-5 pong"},
		{"multi without a body", requestFrame(14, nil), "-5 pong"},
		{"multi without an end", requestFrame(14, part(13, body("/", int32(-1)))), "-5 pong"},
		{"multi of nothing", requestFrame(14, transaction()), "0 pong"},
		{"multi with a short part", requestFrame(14, part(13, nil)), "-5 pong"},
		{"multi in a multi", requestFrame(14, transaction(part(14, transaction()))), "-5 pong"},
		{"multi with an unknown part", requestFrame(14, transaction(part(77, nil))), "-5 pong"},
		{"multiRead without a body", requestFrame(22, nil), "-5 pong"},
		{"multiRead with a write", requestFrame(22, transaction(part(2, body("/m", int32(-1))))), "-5 pong"},
		{"setWatches without a body", requestFrame(101, nil), "-5 pong"},
		{"setWatches, 2^31-1 paths", requestFrame(101, body(int64(0), int32(1<<31-1))), "-5 pong"},
		{"setWatches, -2 paths", requestFrame(101, body(int64(0), int32(-2), int32(-2), int32(-2))), "0 pong"},
		{"setWatches, a null list", requestFrame(101, body(int64(0), []string{"/none"}, null{}, []string{"/none"})), "0 -5 pong"},
		{"setWatches, null lists", requestFrame(101, body(int64(0), null{}, null{}, null{})), "-5 pong"},
		{"setWatches2, a null list at the end", requestFrame(105, body(int64(0), []string{"/none"}, []string{}, []string{"/none"}, []string{}, null{})), "2 of 0 -5 pong"},
		{"addWatch, mode 9", requestFrame(106, body("/", int32(9))), "-5 pong"},
		{"removeWatches, type 9", requestFrame(18, body("/", int32(9))), "-5 pong"},
		{"auth without a body", requestFrame(100, nil), "closed"},
		{"auth, scheme of length 2^31-1", requestFrame(100, body(int32(0), int32(1<<31-1))), "closed"},
		{"auth, null scheme", requestFrame(100, body(int32(0), null{}, []byte{})), "-115 closed"},
		{"auth, null credentials", requestFrame(100, body(int32(0), "digest", null{})), "-115 closed"},
		{"auth, empty credentials", requestFrame(100, body(int32(0), "digest", []byte{})), "0 pong"},
		{"auth by the address, null credentials", requestFrame(100, body(int32(0), "ip", null{})), "0 pong"},
		{"auth, unknown scheme", requestFrame(100, body(int32(0), "what", []byte{})), "-115 closed"},
		{"sasl without a body", requestFrame(102, nil), "closed"},
		{"ping with a body", frame(body(int32(-2), int32(11), int64(1))), "pong"},
		{"closeSession with a body", requestFrame(-11, body(int64(1))), "0 closed"},
		{"flood", e.Bytes(), "1000 of 0 pong"},
	}
}

// TestConformMalformed sends frames that are not right and compares what comes
// back. Each time another connection is served.
func TestConformMalformed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr := srv.addr
		bystander := rawSession(t, addr)
		run := func(m malformed, greet bool) {
			c := dialRaw(t, addr)
			got := ""
			if greet {
				if err := c.handshake(0, 4000, 0, nil16()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Write(m.bytes); err != nil {
				t.Fatal(err)
			}
			// A ping behind what the server closes for may or may not be answered.
			if strings.HasSuffix(m.want, "pong") {
				if err := c.sendXid(-2, 11, nil); err != nil {
					t.Fatal(err)
				}
			}
			if !greet {
				got = firstAnswer(c)
			}
			if got == "" || got == "session" {
				got = strings.TrimSpace(got + " " + laterAnswers(c))
			}
			if got != m.want {
				t.Errorf("in a session: %v, %s: %s, want %s", greet, m.name, got, m.want)
			}
			must(t, bystander, 3, body("/", false), 0)
		}
		for _, m := range malformedFirst() {
			run(m, false)
		}
		for _, m := range malformedLater() {
			run(m, true)
		}
	})
}

// firstAnswer reads the answer to a handshake.
func firstAnswer(c *raw) string {
	_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
	p, err := c.readFrame()
	if err != nil {
		return kindOfError(err)
	}
	d := dec{b: p}
	d.int()
	if timeout, id := d.int(), d.long(); timeout == 0 && id == 0 {
		return "refused"
	}
	return "session"
}

// laterAnswers reads replies up to that to a ping.
func laterAnswers(c *raw) string {
	_ = c.SetReadDeadline(time.Now().Add(3 * time.Second))
	codes, last, same := []string{}, "", 0
	flush := func() {
		if same > 1 {
			codes = append(codes, fmt.Sprintf("%d of %s", same, last))
		} else if same == 1 {
			codes = append(codes, last)
		}
		same = 0
	}
	for {
		a, err := c.receive()
		code := fmt.Sprint(a.err)
		switch {
		case err != nil:
			flush()
			return strings.Join(append(codes, kindOfError(err)), " ")
		case a.xid == -2:
			flush()
			return strings.Join(append(codes, "pong"), " ")
		case code != last || same == 0:
			flush()
			last = code
		}
		same++
	}
}

// TestConformHalfFrames ends connections in the middle of a frame. The server ends
// its side, and serves others.
func TestConformHalfFrames(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		addr := srv.addr
		bystander := rawSession(t, addr)
		whole := requestFrame(4, body("/", false))
		for n := 1; n < len(whole); n++ {
			for _, greet := range []bool{false, true} {
				c := dialRaw(t, addr)
				if greet {
					if err := c.handshake(0, 4000, 0, nil16()); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := c.Write(whole[:n]); err != nil {
					t.Fatal(err)
				}
				closeWrite(t, c)
				if p, err := c.readFrame(); kindOfError(err) != "closed" {
					t.Errorf("%d bytes, session %v: %x, %v", n, greet, p, err)
				}
				must(t, bystander, 3, body("/", false), 0)
			}
		}
	})
}
