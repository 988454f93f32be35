package kerberos

import (
	"errors"
	"regexp"
	"testing"
)

// letters are tokens of which one word says what is in them.
type letters struct{ judged string }

func (*letters) first() []byte { return []byte("AP-REQ") }

func (l *letters) accept(token []byte) error { return l.judge(token, "R") }

func (l *letters) choose(token []byte) ([]byte, error) { return []byte("choice"), l.judge(token, "O") }

func (l *letters) judge(token []byte, want string) error {
	l.judged += want
	if string(token) != want {
		return errors.New("wrong")
	}
	return nil
}

// What a server sends in a login in which the client is let in: the first token is of no
// matter, then come the AP-REP (R), the offer (O), and null (N) or an empty token (E).
var (
	letIn  = regexp.MustCompile("^.RO[NE]$")
	onTime = regexp.MustCompile("^.$|^.R$|^.RO$|^.RO[NE]$")
)

// In every sequence of tokens the client is let in by the one that proves the server, and
// nothing else. After the first wrong token it sends nothing more.
func TestExploreNegotiation(t *testing.T) {
	t.Parallel()
	tokenOf := map[rune][]byte{'N': nil, 'E': {}, 'R': []byte("R"), 'O': []byte("O"), 'X': []byte("X")}
	sent := map[int]string{1: "AP-REQ", 2: "", 3: "choice"}
	sequences, in := 0, 0
	var walk func(heard string)
	walk = func(heard string) {
		var n negotiation
		var l letters
		for i, letter := range heard {
			so := heard[:i+1]
			answer, proven, err := n.next(&l, tokenOf[letter])
			good := onTime.MatchString(so)
			if (err == nil) != good || proven != letIn.MatchString(so) {
				t.Fatalf("after %q: proven %v, error %v", so, proven, err)
			}
			if wants := good && !proven; wants && (answer == nil || string(answer) != sent[i+1]) || !wants && answer != nil && err == nil {
				t.Fatalf("after %q the client sends %q", so, answer)
			}
			if says := n.Refused() != ""; says != (good && (i == 0 || i == 2)) {
				t.Fatalf("after %q: what is likely wrong is said: %v", so, says)
			}
			if proven {
				in++
			}
		}
		if len(l.judged) > 2 {
			t.Fatalf("%q: a token was judged twice: %s", heard, l.judged)
		}
		if sequences++; len(heard) == 6 {
			return
		}
		for letter := range tokenOf {
			walk(heard + string(letter))
		}
	}
	walk("")
	if t.Logf("%d sequences, let in in %d", sequences, in); sequences < 19000 || in == 0 {
		t.Error("nothing is tested")
	}
}
