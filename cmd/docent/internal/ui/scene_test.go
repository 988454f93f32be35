package ui_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
)

// nameOf is the name that a library gives a contender's node, without its number.
func nameOf(n int, tag string) string {
	return fmt.Sprintf("_c_0c708091-6d54-8320-8594-%012x-%s", n, tag)
}

// crowd puts contenders contenders into the lines of locks locks, round about. Each of the
// processes has a session.
func (r *rig) crowd(locks, contenders, processes int) {
	r.Helper()
	w := r.connect("crowd")
	for i := range locks {
		r.check(makeDir(r, w, fmt.Sprintf("/locks/team%02d/lock%04d", i%40, i)))
	}
	var wg sync.WaitGroup
	errs := make(chan error, processes)
	for p := range processes {
		c := r.connect(fmt.Sprint("process", p))
		wg.Go(func() {
			var ops []client.Op
			for n := p; n < contenders; n += processes {
				i := n % locks
				ops = append(ops, client.CreateOp(fmt.Sprintf("/locks/team%02d/lock%04d/%s", i%40, i, nameOf(n, "lock-")),
					fmt.Appendf(nil, "10.0.%d.%d pid=%d client=worker-%d", p/250, p%250, 1000+p, p), client.Ephemeral(), client.Sequential()))
				if len(ops) == 200 || n+processes >= contenders {
					if _, err := c.Multi(r.Context(), ops...); err != nil {
						errs <- err
						return
					}
					ops = nil
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		r.Fatal(err)
	default:
	}
}

func makeDir(r *rig, c *client.Client, at string) error {
	_, err := c.Create(r.Context(), at, nil, client.WithPersistentParents())
	return err
}

// office is a scene of a working day: locks, one of them stuck, an election, a group, a
// semaphore, a deadlock.
func (r *rig) office() {
	r.Helper()
	billing, shop, report, mail := r.connect("billing"), r.connect("shop"), r.connect("report"), r.connect("mail")
	who := func(name string, n int) string { return fmt.Sprintf("10.4.0.%d pid=%d client=%s", n, 4700+n, name) }
	r.srv.JumpClock(-3 * time.Minute)
	for i := range 58 {
		lock := fmt.Sprintf("/locks/%s", []string{"orders", "invoices", "stock", "mails", "cards", "prices"}[i%6])
		r.node(report, fmt.Sprintf("%s/%02d/%s", lock, i, nameOf(i, "lock-")), who("report", 30+i))
	}
	r.srv.JumpClock(-38 * time.Minute)
	at := "/locks/payments/settle/"
	r.node(billing, at+nameOf(100, "lock-"), who("billing", 7))
	for i := range 4 {
		r.srv.JumpClock(7 * time.Minute)
		r.node(r.connect("shop"), at+nameOf(101+i, "lock-"), who("shop", 21+i))
	}
	r.srv.JumpClock(11 * time.Minute)
	r.node(mail, "/locks/a/"+nameOf(200, "lock-"), who("mail", 9))
	r.node(shop, "/locks/b/"+nameOf(201, "lock-"), who("shop", 20))
	r.node(shop, "/locks/a/"+nameOf(202, "lock-"), who("shop", 20))
	r.node(mail, "/locks/b/"+nameOf(203, "lock-"), who("mail", 9))
	for i, c := range []*client.Client{report, mail, shop} {
		r.node(c, "/leaders/scheduler/"+nameOf(300+i, "latch-"), fmt.Sprintf("node-%d", i+1))
		_, err := c.Create(r.Context(), fmt.Sprintf("/members/workers/host-%d", i+1), fmt.Appendf(nil, `{"port": 80%02d}`, i), client.Ephemeral(), client.WithParents())
		r.check(err)
		r.node(r.connect("encoder"), "/semaphores/encoders/leases/"+nameOf(400+i, "lease-"), who("encoder", 40+i))
	}
	r.node(billing, "/semaphores/encoders/locks/"+nameOf(404, "lock-"), who("billing", 7))
	r.srv.JumpClock(2 * time.Minute)
	_, err := report.Create(r.Context(), "/config/limits", []byte(`{"requests": 120, "burst": 20}`), client.WithPersistentParents())
	r.check(err)
}

// hostile puts names and data into the tree that no page may run, or break at.
func (r *rig) hostile() {
	r.Helper()
	c := r.connect("hostile")
	for i, name := range []string{
		`<script>document.title='owned'</script>`, `<img src=x onerror="document.title='owned'">`,
		`"onmouseover="document.title='owned'"`, `%3Cscript%3E?at=#&q=`, "javascript:document.title='owned'",
		"back\\slash 'quote' \u202egnp.exe", strings.Repeat("long", 1250),
	} {
		name = strings.ReplaceAll(name, "/", "∕") // the one character that no name has
		at := "/hostile/" + name
		r.node(c, at+"/"+nameOf(i, "lock-"), "<b>10.0.0.1</b> pid=1 client="+name)
		r.node(c, at+"/"+nameOf(50+i, "lock-"), "a\x00b\x1b[31m\nevent: status\ndata: {}\n\n"+name)
	}
}
