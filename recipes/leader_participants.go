package recipes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// Participant is a node in the line of an election, of this library or of Curator. Its
// Holder is set for the first in line, which leads, as far as the servers know.
type Participant struct {
	Contender

	// ID is what the participant calls itself; see [WithID]. It is "" while the node
	// may not be read, and while only a request to release stands there.
	ID string
	// InDoubt is set if the participant is one of this value's own campaigns, and its
	// session is lost. The servers are about to delete the node, and the participant
	// does not lead.
	InDoubt bool
}

// Participants lists the leader and the waiting participants, in order. A path that no
// participant uses is an empty line. A participant that leaves while Participants reads
// is left out. The servers are asked, and one that lags may answer from the past.
func (e *Election) Participants(ctx context.Context) ([]Participant, error) {
	line, changed, err := e.line(ctx)
	if err != nil {
		return nil, e.fail("list", err)
	}
	found, err := contenders(ctx, e.l.c, e.l.queue, line, changed)
	if err != nil {
		return nil, e.fail("list", err)
	}
	e.l.tellWaiting(found)
	all := make([]Participant, len(found))
	for i, c := range found {
		all[i] = e.participant(c)
		all[i].Holder = i == 0 // participants before it have left meanwhile
	}
	return all, nil
}

// Leader returns the first participant in line. Without one the error matches
// [ErrNoParticipant].
func (e *Election) Leader(ctx context.Context) (Participant, error) {
	for {
		line, changed, err := e.line(ctx)
		if err == nil && len(line) == 0 {
			err = fmt.Errorf("%w: the line is empty", ErrNoParticipant)
		}
		if err != nil {
			return Participant{}, e.fail("find the leader of", err)
		}
		found, err := contenders(ctx, e.l.c, e.l.queue, line[:1], changed)
		if err != nil {
			return Participant{}, e.fail("find the leader of", err)
		}
		if len(found) > 0 {
			return e.participant(found[0]), nil
		}
		// It has left meanwhile: look again.
	}
}

// line lists the nodes of the election itself, in order, with the newest change of the
// directory's children.
func (e *Election) line(ctx context.Context) (line []seqqueue.Node, changed int64, err error) {
	line, changed, err = e.l.queue.LineWithChange(ctx)
	return slices.DeleteFunc(line, func(n seqqueue.Node) bool { return n.Recipe != "" }), changed, err
}

// participant is a contender as a participant.
func (e *Election) participant(c Contender) Participant {
	p := Participant{Contender: c, InDoubt: e.sessions.lost(c.Session)}
	if string(c.Data) != revocation {
		p.ID = string(c.Data)
	}
	return p
}

// ownSessions are the sessions in which an election has campaigned of late. The older
// ones are forgotten: the servers have deleted their nodes long since.
type ownSessions struct {
	mu  sync.Mutex
	all []*client.Session
}

const rememberedSessions = 4

func (o *ownSessions) add(s *client.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.all, func(known *client.Session) bool { return known.ID() == s.ID() }) {
		return
	}
	o.all = append(o.all, s)
	o.all = slices.Delete(o.all, 0, max(0, len(o.all)-rememberedSessions))
}

// timeout is that of the newest session, 0 before the first campaign.
func (o *ownSessions) timeout() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return 0
	}
	return o.all[len(o.all)-1].Timeout()
}

// lost reports whether the session with that id is one of these and is over.
func (o *ownSessions) lost(id int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.all, func(s *client.Session) bool { return s.ID() == id && s.Err() != nil })
}
