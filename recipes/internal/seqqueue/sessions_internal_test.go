package seqqueue

import (
	"testing"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// I5: members that are linked are of one session. A guard says the number of a connection, and
// each session counts its connections from 1. Between core.sessionOver and hub.end the guard of
// the lost session still holds for the connection 1 of the next session.
func TestChainLinksNoTwoSessions(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	a := p.make(5, mutexTag)
	p.listed(a)
	srv := zktest.NewServer(t)
	c := testrig.Connect(t.Context(), t, "zk", srv.DialContext)
	one, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSession(one.ID())
	<-one.Context().Done()
	if p.session, err = c.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := p.make(6, mutexTag)
	p.want("of another session", b, unknown, nil)
	if err := b.audit(); err != nil {
		t.Error(err)
	}
}
