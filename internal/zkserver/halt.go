package zkserver

import "time"

// Halt makes the member's process stand still, as SIGSTOP does, or a virtual
// machine that is moved: clients and other members can connect and send, and
// hear nothing. Nothing that it does by itself happens, sessions that it tracks
// do not expire, and it does not notice that others have given it up. Continue
// lets it go on where it was, and then everything that is overdue happens. A
// member that is down cannot be halted, and Stop and Crash end a halt.
func (m *Member) Halt() {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	if !m.runs() {
		return
	}
	now := time.Now()
	for _, o := range m.e.members {
		if o != m {
			m.lose(o, now)
			o.lose(m, now)
		}
	}
	m.halted, m.suspended = true, true
	m.held |= holdHalted
	for k := range m.links {
		k.hold(holdHalted)
	}
	m.e.settle()
}

// Continue undoes Halt. For up to a tick a leader that has been deposed
// meanwhile answers reads from its old state, as the real one does.
func (m *Member) Continue() {
	m.e.mu.Lock()
	m.proceed()
	m.e.settle()
	m.e.mu.Unlock()
	m.report()
}

// proceed lets a halted member go on. The mutex is held.
func (m *Member) proceed() {
	if !m.halted {
		return
	}
	m.halted = false
	m.held &^= holdHalted
	for k := range m.links {
		k.release(holdHalted)
	}
	if m.role == roleLeading {
		m.checkAt = time.Time{} // it counts its followers at its next tick
		m.suspended = false
		m.armNextExpiry()
	}
	m.e.deliverHeld()
}
