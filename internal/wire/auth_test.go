package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

func withAuth(pairs ...string) func(*wire.Config) {
	return func(cfg *wire.Config) {
		var auth []wire.Auth
		for i := 0; i < len(pairs); i += 2 {
			auth = append(auth, wire.Auth{Scheme: pairs[i], Credentials: []byte(pairs[i+1])})
		}
		cfg.Auth = func() []wire.Auth { return auth }
	}
}

// slowDial takes a while, and fails like a dialer when its context ends.
func slowDial(servers int, takes time.Duration) func(*wire.Config) {
	return func(cfg *wire.Config) {
		cfg.Servers = func() int { return servers }
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, server string) (net.Conn, error) {
			select {
			case <-time.After(takes):
				return dial(ctx, server)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
}

// shakeWithAuth accepts the handshake and expects the credentials before
// go-zookeeper has seen any of the answer.
func shakeWithAuth(r *rig, c net.Conn, p *peer) {
	r.t.Helper()
	answer := connectResponse(sessionID, timeout)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.next()
		p.write(answer)
		p.expect(frame(-4, 100, 0, "digest", "user:secret"))
		p.expect(frame(-4, 100, 0, "x", "other"))
		r.note("authenticated")
	}()
	if _, err := c.Write(connectRequest(r.link.SessionID())); err != nil {
		r.t.Fatal(err)
	}
	r.wantRead(c, answer[:1])
	<-done
	r.wantRead(c, answer[1:])
}

func TestAuthIsSentAfterEveryHandshake(t *testing.T) {
	t.Parallel()
	r := newRig(t, withAuth("digest", "user:secret", "x", "other"))
	for range 2 {
		c, p := r.dial()
		shakeWithAuth(r, c, p)
		event := reply(-1, -1, 0, 1, 3, "/a")
		go func() {
			p.write(reply(-4, 0, 0))
			p.write(event)
			p.write(reply(-4, 0, 0))
			p.write(reply(7, 1, 0))
			p.write(reply(-4, 0, -4)) // an answer without a request: not the Link's
		}()
		r.wantRead(c, event)
		r.wantRead(c, reply(7, 1, 0))
		r.wantRead(c, reply(-4, 0, -4))
		_ = c.Close()
	}
	r.wantAlive()
}

func TestAuthFailureEndsTheSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code int
		text string
	}{{-115, "scheme x"}, {-4, "code -4"}} {
		r := newRig(t, withAuth("digest", "user:secret", "x", "other"))
		c, p := r.dial()
		shakeWithAuth(r, c, p)
		go func() {
			p.write(reply(-4, 0, 0))
			p.write(reply(-4, 0, tt.code))
		}()
		_, err := c.Read(make([]byte, 64))
		if !errors.Is(err, wire.ErrAuthFailed) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("Read = %v, want ErrAuthFailed with %q", err, tt.text)
		}
		if code := wire.ServerError(0); errors.As(err, &code) != (tt.code != -115) {
			t.Errorf("ServerError in %v: %v", err, code)
		}
		r.wantOver(wire.ErrAuthFailed)
	}
}

// With AuthFirst the Link is up once the last credentials are accepted, and never if they
// are refused. It has the session in both cases.
func TestAuthFirst(t *testing.T) {
	t.Parallel()
	for code, up := range map[int]bool{0: true, -115: false, -4: false} {
		r := newRig(t, withAuth("digest", "user:secret", "x", "other"), func(cfg *wire.Config) { cfg.AuthFirst = true })
		c, p := r.dial()
		answer := connectResponse(sessionID, timeout)
		go func() {
			_, _ = p.next()
			p.write(answer)
			p.expect(frame(-4, 100, 0, "digest", "user:secret"))
			p.expect(frame(-4, 100, 0, "x", "other"))
			p.write(reply(-4, 0, 0))
			r.mu.Lock()
			early := len(r.ups)
			r.mu.Unlock()
			if early > 0 {
				t.Error("up before the last answer")
			}
			p.write(reply(-4, 0, code))
			if code == 0 {
				p.write(reply(7, 1, 0))
			}
		}()
		if _, err := c.Write(connectRequest(0)); err != nil {
			t.Fatal(err)
		}
		if up {
			r.wantRead(c, answer)
			r.wantRead(c, reply(7, 1, 0))
			r.wantAlive()
		} else {
			if _, err := c.Read(make([]byte, 64)); !errors.Is(err, wire.ErrAuthFailed) {
				t.Errorf("Read = %v", err)
			}
			r.wantOver(wire.ErrAuthFailed)
		}
		r.mu.Lock()
		if (len(r.ups) == 1) != up {
			t.Errorf("code %d: OnUp was called %d times", code, len(r.ups))
		}
		r.mu.Unlock()
		if r.link.SessionID() != sessionID || r.link.Server() != "s:1" || len(r.link.Password()) == 0 {
			t.Errorf("code %d: session %#x of %q", code, r.link.SessionID(), r.link.Server())
		}
	}
}

func TestAuthIsRedacted(t *testing.T) {
	t.Parallel()
	a := wire.Auth{Scheme: "digest", Credentials: []byte("user:secret")}
	cfg := struct{ Auth []wire.Auth }{[]wire.Auth{a}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", a, &a, cfg)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("m", "auth", a, "pointer", &a, "within", cfg)
	}
	b, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(b)
	_, _ = io.WriteString(&out, a.String()+a.LogValue().String())
	for _, secret := range []string{"user:secret", "dXNlcjpzZWNyZXQ", "757365723a736563726574", "757365723A736563726574", "117 115 101 114"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("credentials leak as %q in\n%s", secret, &out)
		}
	}
	if !strings.Contains(out.String(), "digest") {
		t.Error("the scheme is hidden too")
	}
}
