package exclusion_test

import (
	"encoding/json"
	"errors"
	"net"
	"time"
)

// kind is what a holder tells the witness.
type kind string

const (
	opened  kind = "open"    // it holds the lock and begins
	closed  kind = "close"   // it has done its work
	late    kind = "late"    // a write that was on its way when the hold was lost
	shunned kind = "shunned" // what it believes after its open was refused
)

// report is one line from a holder to the witness.
type report struct {
	Kind     kind
	Worker   int
	Routine  int
	Token    int64
	Sequence int64
	Node     string // path of its node
	Believes bool   // Hold.Err was nil right before this was sent
}

// verdict is the witness's answer.
type verdict struct {
	Accepted bool
	Spin     time.Duration // keep a processor busy for so long before you go on
}

// line is a holder's connection to the witness, one for each goroutine.
type line struct {
	conn net.Conn
	enc  *json.Encoder
	dec  *json.Decoder
}

func dialWitness(socket string) (*line, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	return &line{conn, json.NewEncoder(conn), json.NewDecoder(conn)}, nil
}

// tell sends a report and waits for the answer.
func (l *line) tell(r report) (v verdict, err error) {
	err = errors.Join(l.enc.Encode(r), l.dec.Decode(&v))
	return v, err
}
