package watches

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
)

// A wait of a session that is over holds for no connection, also in the moment in which the
// next session may have begun and the watches of the first are not ended yet.
func TestWaitOfALostSession(t *testing.T) {
	t.Parallel()
	all := New(nil)
	s := session.New(t.Context(), session.Config{Link: wire.Config{SessionTimeout: time.Second, Dial: noDial}})
	h := all.Join(s)
	h.Up(false)
	const connection = 1
	w := Wait{hub: h}
	h.change(func(t *table, now time.Time) {
		w.on, _ = t.share(spot{"/lock", dataSide})
		t.queued("/lock")
		t.answered(w.on, outcome{asked: true, sent: true, answered: true, conn: connection}, now)
	})
	if !w.Holds(connection) {
		t.Fatal("the wait does not hold while its session lives")
	}
	if w.Holds(connection + 1) {
		t.Error("the wait holds for another connection")
	}
	s.Drop(fate.ErrSessionLost)
	if w.Holds(connection) {
		t.Error("the wait holds for a connection of the next session")
	}
}

func noDial(context.Context, string) (net.Conn, error) { return nil, errors.New("there is no server") }
