package client_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// Whatever a client calls may close it, also on another goroutine, and need not
// wait for itself.
func TestCloseFromAHook(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(closeIt func()) client.Option{
		"a change of the state": func(closeIt func()) client.Option {
			return client.WithObserver(client.Observer{StateChange: func(ch client.StateChange) {
				if ch.State == client.Suspended {
					closeIt()
				}
			}})
		},
		"the loss of the session": func(closeIt func()) client.Option {
			return client.WithObserver(client.Observer{StateChange: func(ch client.StateChange) {
				if ch.State == client.Lost {
					closeIt()
				}
			}})
		},
		"the end": func(closeIt func()) client.Option { // beside a Close that waits for the hook
			return client.WithObserver(client.Observer{StateChange: func(ch client.StateChange) {
				if ch.State == client.Closed {
					closeIt()
				}
			}})
		},
		"an operation": func(closeIt func()) client.Option {
			return client.WithObserver(client.Observer{Operation: ended(func(client.OperationResult) { closeIt() })})
		},
		"a retry": func(closeIt func()) client.Option {
			return client.WithObserver(client.Observer{Retry: func(context.Context, client.RetryInfo) { closeIt() }})
		},
		"a heartbeat": func(closeIt func()) client.Option {
			return client.WithObserver(client.Observer{Heartbeat: func(client.HeartbeatInfo) { closeIt() }})
		},
		"a dial": func(closeIt func()) client.Option { // the first is before there is a client
			return client.WithObserver(client.Observer{Dial: func(d client.DialInfo) {
				if d.Restored {
					closeIt()
				}
			}})
		},
		"a removal": func(closeIt func()) client.Option {
			return client.WithObserver(client.Observer{Removal: func(client.RemovalInfo) { closeIt() }})
		},
		"a line of the log": func(closeIt func()) client.Option {
			return client.WithLogger(slog.New(closingHandler{slog.DiscardHandler, closeIt}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var c *client.Client
				var took time.Duration
				closed := make(chan struct{})
				begin := sync.OnceFunc(func() {
					done := make(chan struct{})
					begun := time.Now()
					go func() {
						defer close(done)
						r.Check(c.CloseContext(r.Within(30 * time.Minute)))
					}()
					<-done
					took = time.Since(begun)
					close(closed)
				})
				c = r.Connect("a", hook(begin))
				r.create("/a", "")
				time.Sleep(10 * time.Second)
				switch name {
				case "the loss of the session":
					r.Srv.ExpireSession(r.Session(c).ID())
				case "the end":
					go func() { _ = c.CloseContext(r.Within(30 * time.Minute)) }()
				case "a retry":
					r.Srv.LoseReply(zktest.Match{Op: zktest.OpGetData})
					_, _, _ = c.Get(r.Ctx, "/a")
				case "a heartbeat":
					r.hold(c, "/held")
				case "a removal":
					r.Check(inner.DeleteInBackground(r.Session(c), "/a", nil))
				case "an operation":
					_, _, _ = c.Get(r.Ctx, "/a")
				default:
					r.Srv.CutAll()
				}
				r.await("Close", closed)
				if took > time.Second {
					t.Errorf("Close took %v", took)
				}
				time.Sleep(time.Second)
				wantQuiet(t)
				if left := r.Srv.Sessions(); len(left) > 0 {
					t.Errorf("sessions left: %+v", left)
				}
			})
		})
	}
}

// closingHandler closes the client at the first warning.
type closingHandler struct {
	slog.Handler
	closeIt func()
}

func (h closingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h closingHandler) Handle(_ context.Context, rec slog.Record) error {
	if rec.Message == "zookeeper: no connection" {
		h.closeIt()
	}
	return nil
}

// Close waits for hooks and log handlers that do not wait for it: they have been
// told everything when it returns.
func TestCloseTellsTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var last client.State
		c := r.Connect("a", client.WithObserver(client.Observer{StateChange: func(ch client.StateChange) {
			time.Sleep(50 * time.Millisecond) // it writes somewhere
			last = ch.State
		}}))
		time.Sleep(time.Second)
		r.Check(c.CloseContext(r.Ctx))
		if last != client.Closed {
			t.Errorf("the hook was told of %v at last", last)
		}
	})
}
