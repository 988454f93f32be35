package ui_test

import (
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/ui"
)

func TestPageShowsTheLineOfALock(t *testing.T) {
	t.Parallel()
	r := newRig(t, ui.Config{})
	a, b := r.connect("a"), r.connect("b")
	held := r.stand(a, "/locks/orders", "10.0.0.7 pid=4711 client=billing")
	r.stand(b, "/locks/orders", "10.0.0.8 pid=12 client=shop")
	s := r.open("lock", "/locks/orders", "")
	s.until("two", func(_ state, p picture) bool { return len(p.Queue) == 2 && p.Queue[1].Client == "shop" })
	p := s.last
	if q := p.Queue[0]; q.Path != held || q.State != "holds" || q.Host != "10.0.0.7" || q.PID != "4711" || q.Client != "billing" || q.Library != "Docent" || q.Held.By != q.Since {
		t.Errorf("the holder is %+v", q)
	}
	r.check(r.srv.Delete(held))
	s.until("the hand-over", func(_ state, p picture) bool { return len(p.Queue) == 1 && p.Queue[0].State == "holds" })
	q := s.last.Queue[0]
	if q.Held.From == 0 || q.Held.By < q.Held.From {
		t.Errorf("held %+v", q.Held)
	}
	s.until("what has happened", func(_ state, p picture) bool { return len(p.Past) == 4 })
	if past := s.last.Past; past[0].What != "holds" || past[0].Who != "shop on 10.0.0.8 pid 12" || past[1].What != "left" {
		t.Errorf("%+v", past)
	}
}
