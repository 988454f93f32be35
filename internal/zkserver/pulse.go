package zkserver

import "time"

// react does everything that a change has made possible. Every change of the
// ensemble ends with it.
func (e *Ensemble) react() {
	for _, m := range e.members {
		switch m.role {
		case roleLeading:
			m.commit()
		case roleFollowing:
			m.learn()
			m.advance()
		case roleLooking, roleDown:
		}
	}
	switch possible := e.canDecide(); {
	case !possible:
		e.electAt = time.Time{}
	case e.electAt.IsZero():
		e.electAt = time.Now().Add(e.cfg.ElectionTime)
	}
	e.arm()
}

// arm sets the timer of the ensemble to the next instant at which something is due.
// While nothing is due, no timer runs, so that an idle simulation comes to rest.
func (e *Ensemble) arm() {
	at := e.next()
	if e.closed || at.IsZero() || !e.timerAt.IsZero() && !e.timerAt.After(at) {
		return
	}
	if e.timer != nil {
		e.timer.Stop() // if it has fired already, the pulse finds nothing due
	}
	e.timerAt = at
	e.timer = time.AfterFunc(time.Until(at), e.pulse)
}

// next returns the first instant at which something is due, or zero.
func (e *Ensemble) next() time.Time {
	first := e.electAt
	sooner := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	now := time.Now()
	for _, m := range e.members {
		if m.halted {
			continue
		}
		switch m.role {
		case roleFollowing:
			if !m.hearsLeader() {
				sooner(m.deadline())
			}
			if m.reachesLeader() && len(m.touched) > 0 && e.beatAt.IsZero() {
				e.beatAt = e.lastBeat(now).Add(e.cfg.Tick / 2)
			}
			if len(m.log) > 0 && m.log[0].known && !m.holding {
				sooner(m.log[0].due)
			}
		case roleLeading:
			if m.checkAt.IsZero() && m.doubtful() {
				m.checkAt = e.start.Add(time.Duration(e.ticks(now)+1)*e.cfg.Tick + beatOffset)
			}
			sooner(m.checkAt)
			if len(m.proposals) > 0 && !m.logHeld && m.proposals[0].due.After(now) {
				sooner(m.proposals[0].due)
			}
		case roleLooking, roleDown:
		}
	}
	sooner(e.beatAt)
	return first
}

// pulse does what is due. One timer does all of it, so that things that are due at
// one instant happen in one order.
func (e *Ensemble) pulse() {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return
	}
	e.wg.Add(1)
	defer e.wg.Done()
	e.timerAt = time.Time{}
	now := time.Now()
	if isDue(e.beatAt, now) {
		e.beatAt = time.Time{}
		for _, m := range e.members {
			m.relay()
		}
	}
	for _, m := range e.members {
		switch {
		case m.halted:
		case m.role == roleFollowing && !m.hearsLeader() && isDue(m.deadline(), now):
			m.leave()
		case m.role == roleLeading && isDue(m.checkAt, now):
			m.checkAt = time.Time{}
			m.count()
		}
	}
	if isDue(e.electAt, now) {
		e.electAt = time.Time{}
		e.decide()
	}
	e.react()
	e.mu.Unlock()
	e.report()
}

func isDue(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// report tells observers what has happened; see [Server.OnRequest].
func (e *Ensemble) report() { e.members[0].report() }
