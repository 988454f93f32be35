package zktest

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/zkserver"
	"github.com/docent-go/docent/internal/zoodefs"
)

// DropBefore closes the connection when a matching request arrives, and the server
// does not apply the request. The session lives on. For OpConnect no session is
// made.
func (s *Server) DropBefore(m Match) *Rule {
	return s.rule(m, "drop before", func(v *zkserver.Verdict) { v.Drop = true })
}

// LoseReply applies a matching request and closes its connection. The client gets
// neither the reply nor the events that the request caused there, so it cannot know
// whether the request was applied. For OpConnect the session exists and the client
// does not know it.
func (s *Server) LoseReply(m Match) *Rule {
	return s.rule(m, "lose reply", func(v *zkserver.Verdict) { v.LoseReply = true })
}

// DropAfter answers a matching request and then closes its connection.
func (s *Server) DropAfter(m Match) *Rule {
	return s.rule(m, "drop after", func(v *zkserver.Verdict) { v.CloseAfter = true })
}

// StallReply applies a matching request, but neither its reply nor anything after
// it reaches the client. The connection stays open and silent, as when packets are
// lost one way. That ends when the client closes the connection, or when
// [ClientLink.Heal] or [Server.Thaw] delivers what is held.
func (s *Server) StallReply(m Match) *Rule {
	return s.rule(m, "stall reply", func(v *zkserver.Verdict) { v.Stall = true })
}

// Ignore makes the server neither apply nor answer a matching request. The
// connection goes on with the next request.
func (s *Server) Ignore(m Match) *Rule {
	return s.rule(m, "ignore", func(v *zkserver.Verdict) { v.Ignore = true })
}

// Fail answers a matching request with code and does not apply it. Any code will
// do, for instance [CodeThrottledOp], [CodeQuotaExceeded] or one that no client
// knows. After a handshake that fails the client is told that its session is over.
// After an auth request that fails the client gets [CodeAuthFailed], whatever the
// code, and its connection is closed. After a token of a login that fails the
// connection is closed, too.
func (s *Server) Fail(m Match, code Code) *Rule {
	return s.rule(m, "fail", func(v *zkserver.Verdict) { v.Fail = zoodefs.Code(code) })
}

// Delay makes a matching request, and the requests behind it on its connection,
// wait for d before the server looks at them.
func (s *Server) Delay(m Match, d time.Duration) *Rule {
	return s.rule(m, "delay", func(v *zkserver.Verdict) { v.Delay += d })
}

// DelayReply applies a matching request at once, but holds its reply, and
// everything behind it on its connection, for d.
func (s *Server) DelayReply(m Match, d time.Duration) *Rule {
	return s.rule(m, "delay reply", func(v *zkserver.Verdict) { v.ReplyDelay += d })
}

// BeforeApply runs hook when a matching request has arrived and before the server
// applies it. Until hook returns, the server reads nothing more from the connection;
// it serves all other clients. The context ends when the server closes, and hook
// must return then.
func (s *Server) BeforeApply(m Match, hook func(context.Context, Request)) *Rule {
	return s.rule(m, "before", func(v *zkserver.Verdict) { v.Before = append(v.Before, engineHook(hook)) })
}

// BeforeReply runs hook when the server has applied a matching request and before it
// sends the reply. What hook does, or makes others do, has happened when the client
// reads the reply. The server applies the connection's later requests meanwhile, but
// their replies wait as well. The context ends when the server closes, and hook must
// return then.
func (s *Server) BeforeReply(m Match, hook func(context.Context, Request)) *Rule {
	return s.rule(m, "after", func(v *zkserver.Verdict) { v.After = append(v.After, engineHook(hook)) })
}

func engineHook(hook func(context.Context, Request)) func(context.Context, zkserver.Request) {
	return func(ctx context.Context, r zkserver.Request) { hook(ctx, publicRequest(r)) }
}
