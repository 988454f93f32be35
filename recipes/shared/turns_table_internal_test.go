package shared

import (
	"fmt"
	"slices"
)

// table checks what the tables of turns say of the states, and what each order is for.
func (w *world) table() error {
	t := &w.t
	has := t.turn == bare || t.turn == locked
	open, anybody := 0, false
	for i := range t.seats {
		if text := w.seat(i); text != "" {
			return fmt.Errorf("add %d %s", i, text)
		}
		if among(&t.batch, t.batchN, i) {
			anybody = anybody || w.used[i].says == nothing
			if t.seats[i].waits() {
				open++
			}
		}
	}
	switch {
	case open != t.open:
		return fmt.Errorf("%d of the batch are open, and it counts %d", open, t.open)
	case has != (t.batchN > 0):
		return fmt.Errorf("the turn is %d, of %d adds", t.turn, t.batchN)
	case w.runs != (t.turn != resting):
		return fmt.Errorf("somebody calls take: %v, and the turn is %d", w.runs, t.turn)
	case has && w.stopped == anybody:
		return fmt.Errorf("the batch is to stop: %v, and somebody waits for it: %v", w.stopped, anybody)
	}
	return nil
}

func among(list *[adds]int8, n int8, who int) bool { return slices.Contains(list[:n], int8(who)) }

// seat is what is wrong with one add.
func (w *world) seat(i int) string {
	t, s, u := &w.t, &w.t.seats[i], &w.used[i]
	switch {
	case among(&t.queue, t.queueN, i) != (u.arrived && s.stage == queued):
		return "is queued, or is not, and its stage says else"
	case among(&t.want, t.wantN, i) != (s.stage == wanting):
		return "wants the lock, or does not, and its stage says else"
	case among(&t.asks, t.aN, i) != (s.ask == granted || s.ask == using):
		return "has a hold, or has not, and its ask says else"
	case s.waits() && !among(&t.batch, t.batchN, i):
		return "is tried, and is not in the turn"
	case s.stage == trying && t.turn != bare || s.stage == holding && t.turn != locked:
		return "is tried, and the batch has another turn"
	case s.ask == using && (t.turn != locked || w.owner != int8(i)):
		return "has a hold in use, and the batch has another one"
	case s.ask == asking && s.stage != wanting:
		return "asks for the lock, and does not want it"
	case s.stage == wanting && s.ask != asking && s.ask != granted:
		return "wants the lock, and does not ask for it"
	case u.lock == says && t.turn == bare && !w.hurried:
		return "has the lock, and the batch without it goes on"
	case u.says == never && s.stage != left || u.says == in && s.stage != told:
		return "waits no more, and is not out"
	case s.stage == told && s.sent:
		return "has its result, and counts as part of a write"
	}
	return ""
}
