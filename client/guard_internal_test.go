package client

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/zktest"
)

// A guard of a session that is over holds for no connection, also in the moment in which the
// next session may have begun and the watches of the first are not ended yet.
func TestGuardOfALostSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t)
		c, err := Connect(t.Context(), "zk", WithDialer(srv.DialContext), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		s, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.session.awaitProduct(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, ok := setGuard(t.Context(), s, "/").(guard)
		if !ok || !g.Holds(g.on.conn) {
			t.Fatalf("the guard does not hold while its session lives: %+v", g)
		}
		srv.ExpireSession(s.ID())
		<-s.Context().Done()
		synctest.Wait() // the hub has ended
		all := g.hub.all
		all.mu.Lock()
		all.table.details(g.on.at.path).one[g.on.at.side.index()].on = g.on // as before that
		all.mu.Unlock()
		if g.Holds(g.on.conn) {
			t.Error("the guard holds for a connection of the next session")
		}
		all.mu.Lock()
		all.table = newWatchTable()
		all.mu.Unlock()
	})
}
