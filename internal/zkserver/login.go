package zkserver

import (
	"errors"
	"slices"

	"github.com/docent-go/docent/internal/zkserver/access"
	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/sasl"
	"github.com/docent-go/docent/internal/zoodefs"
)

// authenticate adds the identity that an auth packet proves. It reports whether the
// scheme exists and accepts the credentials.
func (c *conn) authenticate(scheme string, credentials []byte) bool {
	switch scheme {
	case "digest":
		if credentials == nil {
			return false // a null pointer in the real server
		}
		id := access.DigestID(string(credentials))
		if id == c.s.cfg.SuperDigest {
			c.auth = access.Add(c.auth, access.ID{Scheme: "super"})
		}
		c.auth = access.Add(c.auth, access.ID{Scheme: "digest", Name: id})
		return true
	case "ip":
		return true // the address is an identity from the start
	default:
		return false
	}
}

// authPacket handles an auth request. It is not bound to the session and does not
// count as a sign of life.
func (c *conn) authPacket(r *request) {
	d := jute.Decoder{B: r.body}
	d.Int() // type, unused
	scheme, _ := d.Text()
	credentials := d.Buffer()
	if d.Err != nil {
		c.close()
		return
	}
	e := jute.NewFrame(16)
	if r.verdict.Fail == zoodefs.CodeOK && c.authenticate(scheme, credentials) {
		e.Header(r.xid, 0, zoodefs.CodeOK)
		c.s.record(r)
		c.reply(r, e.Frame())
		return
	}
	r.err = zoodefs.CodeAuthFailed
	c.refuse(r, 0)
	c.closeAfterOutput()
}

// ValidUser reports whether a user who logs in may have the name.
func ValidUser(name string) bool { return name != "" && sasl.ValidName(name) }

// saslPacket handles a token of a login. Like an auth request it is not bound to the
// session and does not count as a sign of life.
func (c *conn) saslPacket(r *request) {
	d := jute.Decoder{B: r.body}
	token := d.Buffer()
	if d.Err != nil || token == nil { // a null pointer in the real server
		c.close()
		return
	}
	if r.verdict.Ignore {
		c.s.record(r)
		return
	}
	if code := r.verdict.Fail; code != zoodefs.CodeOK {
		c.turnAway(r, code)
		return
	}
	answer, err := c.evaluate(r, token)
	switch {
	case errors.Is(err, sasl.ErrBroken):
		c.close()
		return
	case err != nil && c.s.cfg.requires("sasl"):
		c.turnAway(r, zoodefs.CodeSessionClosedSASL)
		return
	case err != nil && !c.s.cfg.SASL.KeepFailed:
		c.turnAway(r, zoodefs.CodeAuthFailed)
		return
	}
	e := jute.NewFrame(20 + len(answer))
	e.Header(r.xid, 0, zoodefs.CodeOK)
	e.Buffer(answer)
	c.s.record(r)
	c.reply(r, e.Frame())
}

// evaluate takes a token and returns the answer. A server without users has none.
func (c *conn) evaluate(r *request, token []byte) ([]byte, error) {
	if c.s.users == nil || r.verdict.NullToken {
		return nil, nil
	}
	if c.login == nil {
		c.login = c.s.users.NewLogin(func() byte { return byte(c.rng.Uint32()) })
	}
	answer, err := c.login.Answer(token)
	if user, ok := c.login.User(); ok && err == nil {
		c.auth = access.Add(c.auth, access.ID{Scheme: "sasl", Name: user})
		if c.s.cfg.SASL.Super[user] {
			c.auth = access.Add(c.auth, access.ID{Scheme: "super"})
		}
		if r.verdict.WrongProof {
			answer = sasl.Spoil(answer)
		}
	}
	return answer, err
}

// loginStep returns the number of the token of a login that comes next, from 1.
func (c *conn) loginStep(op zoodefs.Op) int {
	switch {
	case op != zoodefs.OpSASL:
		return 0
	case c.login != nil && c.login.Challenged():
		return 2
	default:
		return 1
	}
}

// admitted reports whether the connection may send requests.
func (c *conn) admitted() bool {
	return len(c.s.cfg.RequiredAuth) == 0 ||
		slices.ContainsFunc(c.auth, func(id access.ID) bool { return c.s.cfg.requires(id.Scheme) })
}

// turnAway answers a request of a client that has not proved who it is, and closes the
// connection. The session lives on.
func (c *conn) turnAway(r *request, code zoodefs.Code) {
	r.err = code
	e := jute.NewFrame(20)
	e.Header(r.xid, 0, code)
	if r.op == zoodefs.OpSASL {
		e.Buffer(nil)
	}
	c.s.record(r)
	c.reply(r, e.Frame())
	c.closeAfterOutput()
}
