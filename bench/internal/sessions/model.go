// Package sessions measures what thousands of sessions cost a server and their client,
// and compares that with a model of the cost.
package sessions

import (
	"time"

	"github.com/docent-go/docent/client"
)

// Load is the sessions of one run. Each has at most one lock.
type Load struct {
	Name    string        `json:"name"`
	Idle    int           `json:"idle"`    // connected, and no more
	Waiting int           `json:"waiting"` // in line behind a holder
	Holding int           `json:"holding"`
	Timeout time.Duration `json:"timeout"` // of every session
}

// Sessions is how many there are.
func (l *Load) Sessions() int { return l.Idle + l.Waiting + l.Holding }

// Expected is what the model says of a load that does nothing but stay.
type Expected struct {
	Heartbeats float64 // a second, each a write
	Pings      float64 // a second, each answered by one server alone
	Watches    int
	Ephemerals int
}

// pingsPerTimeout is how many pings go-zookeeper sends in a session timeout.
const pingsPerTimeout = 3

// Expected applies the model. A session that holds commits a heartbeat a period. A
// session that waits commits nothing. Each contender has a node, and watches it. A waiter
// also watches its predecessor's node, and with two contenders ahead the node before that.
// Each holder has a line of its own, and the lines are of one length.
func (l *Load) Expected(p client.LeasePolicy) Expected {
	contenders := l.Waiting + l.Holding
	further := l.Waiting - min(l.Waiting, l.Holding) // not directly behind a holder
	return Expected{
		Heartbeats: float64(l.Holding) / p.Period(l.Timeout).Seconds(),
		Pings:      float64(l.Sessions()) * pingsPerTimeout / l.Timeout.Seconds(),
		Watches:    contenders + l.Waiting + further,
		Ephemerals: contenders,
	}
}

// Requests is everything a second.
func (e Expected) Requests() float64 { return e.Heartbeats + e.Pings }

// Prices is what single requests cost, as one size of the run has shown.
type Prices struct {
	Base, Ping, Heartbeat float64 // a server's processor time: a second of nothing, and each, in seconds
}

// CPU is the part of one processor that the model says a server is busy with e.
func (p Prices) CPU(e Expected) float64 {
	return p.Base + p.Ping*e.Pings + p.Heartbeat*e.Heartbeats
}

// contendersPerLock is the length of the lines of the waiters, their holder included.
const contendersPerLock = 10

// The names of loads.
const (
	idling  = "idle"
	waiting = "waiting"
	holding = "holding"
)

// Loads are the loads of one size: all idle, mostly waiting, all holding.
func Loads(n int, timeout time.Duration) []Load {
	holders := (n + contendersPerLock - 1) / contendersPerLock
	return []Load{
		{Name: idling, Idle: n, Timeout: timeout},
		{Name: waiting, Waiting: n - holders, Holding: holders, Timeout: timeout},
		{Name: holding, Holding: n, Timeout: timeout},
	}
}
