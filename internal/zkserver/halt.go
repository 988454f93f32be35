package zkserver

import "time"

// Halt makes the member's process stand still, as SIGSTOP does: clients and members
// can connect and send, and hear nothing. Nothing that the member does by itself
// happens. A member that is down cannot be halted. Stop and Crash end a halt.
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
	m.e.react()
}

// Continue undoes Halt. Everything that is overdue happens then.
func (m *Member) Continue() {
	m.e.mu.Lock()
	m.proceed()
	m.e.react()
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
