package zktest

import (
	"context"
	"time"
)

// DropBefore closes the connection when a matching request arrives, without
// applying it. The session lives on. For OpConnect no session is made.
func (s *Server) DropBefore(m Match) *Rule {
	return s.rule(m, "drop before", func(v *verdict) { v.drop = true })
}

// LoseReply applies a matching request and closes its connection without the
// reply, nor the events it caused there: the client cannot know whether it
// happened. For OpConnect the session exists and the client does not know it.
func (s *Server) LoseReply(m Match) *Rule {
	return s.rule(m, "lose reply", func(v *verdict) { v.loseReply = true })
}

// DropAfter answers a matching request and then closes its connection.
func (s *Server) DropAfter(m Match) *Rule {
	return s.rule(m, "drop after", func(v *verdict) { v.closeAfter = true })
}

// StallReply applies a matching request, but neither its reply nor anything
// after it reaches the client: the connection stays open and silent, as when
// packets are lost one way, until the client gives it up or
// [ClientLink.Heal] or [Server.Thaw] delivers what is held.
func (s *Server) StallReply(m Match) *Rule {
	return s.rule(m, "stall reply", func(v *verdict) { v.stall = true })
}

// Ignore neither applies nor answers a matching request; the connection goes
// on with the next one.
func (s *Server) Ignore(m Match) *Rule {
	return s.rule(m, "ignore", func(v *verdict) { v.ignore = true })
}

// Fail answers a matching request with code without applying it: any code, for
// instance [CodeThrottledOp], [CodeQuotaExceeded] or one that no client knows.
// A handshake that fails is told that its session is over; a failed auth
// request gets [CodeAuthFailed] and is disconnected, whatever the code.
func (s *Server) Fail(m Match, code Code) *Rule {
	return s.rule(m, "fail", func(v *verdict) { v.fail = code })
}

// Delay makes a matching request, and those behind it on its connection, wait
// for d before the server looks at it.
func (s *Server) Delay(m Match, d time.Duration) *Rule {
	return s.rule(m, "delay", func(v *verdict) { v.delay += d })
}

// DelayReply applies a matching request at once but holds its reply, and
// everything behind it on its connection, for d.
func (s *Server) DelayReply(m Match, d time.Duration) *Rule {
	return s.rule(m, "delay reply", func(v *verdict) { v.replyDelay += d })
}

// BeforeApply runs hook when a matching request has arrived and before it is
// applied. The connection reads nothing more until hook returns; everybody
// else is served. The context ends when the server closes, and hook must
// return then.
func (s *Server) BeforeApply(m Match, hook func(context.Context, Request)) *Rule {
	return s.rule(m, "before", func(v *verdict) { v.before = append(v.before, hook) })
}

// BeforeReply runs hook when a matching request has been applied and before
// its reply is sent: whatever hook does, or makes others do, has happened when
// the client reads the reply. The connection's later requests are served, but
// their replies wait as well. The context ends when the server closes, and
// hook must return then.
func (s *Server) BeforeReply(m Match, hook func(context.Context, Request)) *Rule {
	return s.rule(m, "after", func(v *verdict) { v.after = append(v.after, hook) })
}
