package zkserver

import (
	"context"
	"time"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Verdict says what becomes of one request. The zero Verdict lets it pass.
type Verdict struct {
	Drop       bool         // close the connection and do not apply the request
	LoseReply  bool         // apply the request and close the connection without the reply
	CloseAfter bool         // apply, answer, then close the connection
	Ignore     bool         // neither apply nor answer the request
	Stall      bool         // apply the request, then deliver nothing more
	Fail       zoodefs.Code // answer with this code and do not apply the request
	Delay      time.Duration
	ReplyDelay time.Duration
	// Before runs when the request has arrived, After before its reply is sent.
	// The context ends when the server closes.
	Before, After []func(context.Context, Request)
	// Names are the names of the faults, for the log.
	Names string
}

// Judge decides about a request. The server calls it with its mutex held, so it
// must not call the server. draw returns the next number in [0,1) of the
// connection's own generator.
type Judge func(r Request, draw func() float64) Verdict

// SetJudge makes judge decide about every request and every handshake from now
// on.
func (s *Server) SetJudge(judge Judge) {
	s.mu.Lock()
	s.judge = judge
	s.mu.Unlock()
}

// judged asks the judge about a request. The mutex is held.
func (s *Server) judged(r *request) Verdict {
	if s.judge == nil {
		return Verdict{}
	}
	return s.judge(r.public(), r.c.rng.Float64)
}
