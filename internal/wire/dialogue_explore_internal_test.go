package wire

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/docent-go/docent/internal/explore"
)

// played is a mechanism of so many tokens. A server answers each with a good token; the last
// good one is its proof.
type played struct {
	tokens int8
	sent   int8
	gone   bool // it has given up
}

func (*played) Name() string    { return "PLAYED with s:1" }
func (*played) Refused() string { return "" }

func (m *played) Next(token []byte) (answer []byte, proven bool, err error) {
	switch {
	case m.gone:
		return nil, false, errors.New("called after the end")
	case m.sent > 0 && string(token) != "good":
		m.gone = true
		return nil, false, errors.New("unusable token")
	case m.sent == m.tokens:
		return nil, true, nil
	}
	m.sent++
	return []byte{}, false, nil
}

// loginWorld is a Link that logs in on one connection after another.
type loginWorld struct {
	mechanism played
	sent      int // of the dialogue
	over      bool
	turned    turned
	session   bool // the Link has it
	open      bool // a login is under way
	shut      bool // the Link is over

	// What truly was.
	good  int8 // good tokens on this connection
	last  loginMove
	row   int8 // logins in a row that were turned away
	dials int8
}

type loginMove int8

const (
	dial loginMove = iota
	goodToken
	nullToken
	wrongToken
	refusal
	refusalOfRequired
	otherCode
	hangUp
	hiccup // the time is up, or this side fails
)

var loginMoves = []string{"dial", "good", "null", "wrong", "-115", "-124", "-1", "hang up", "hiccup"}

type loginModel struct {
	tokens int8
	bug    string
}

func (p *loginModel) moves(w *loginWorld, moves []loginMove) []loginMove {
	switch {
	case w.open:
		return append(moves, goodToken, nullToken, wrongToken, refusal, refusalOfRequired, otherCode, hangUp, hiccup)
	case !w.shut && w.dials < 6:
		return append(moves, dial)
	}
	return moves
}

func (p *loginModel) apply(w *loginWorld, move loginMove) error {
	w.last = move
	if move == dial {
		w.dials++
		w.mechanism, w.good, w.sent, w.over, w.open = played{tokens: p.tokens}, 0, 0, false, true
	}
	d := dialogue{login: &w.mechanism, sent: w.sent, over: w.over}
	var s step
	switch move {
	case dial:
		s = d.begin()
	case goodToken:
		w.good++
		s = d.heard(0, []byte("good"))
	case nullToken:
		s = d.heard(0, nil)
		if p.bug == "null is a success" {
			s = step{over: true}
		}
	case wrongToken:
		s = d.heard(0, []byte("wrong"))
	case refusal:
		s = d.heard(-115, nil)
	case refusalOfRequired:
		s = d.heard(-124, nil)
		if p.bug == "one code is no refusal" {
			s = step{over: true, err: &LoginError{Err: ServerError(-124)}}
		}
	case otherCode:
		s = d.heard(-1, nil)
	case hangUp:
		s = d.failed(fmt.Errorf("hung up: %w", io.EOF))
	case hiccup:
		s = d.failed(errors.New("time is up"))
	}
	w.sent, w.over = d.sent, d.over
	if !s.over {
		if s.answer == nil {
			return errors.New("null is sent, and the server would drop the connection")
		}
		return nil
	}
	w.open = false
	first := !w.session
	if p.bug == "a refusal ends every session" {
		first = true
	}
	follows, err := w.turned.judge(s.err, first)
	if p.bug == "a success forgives nothing" && s.err == nil || p.bug == "what comes between forgives nothing" && move == hiccup {
		w.turned = turned(w.row)
	}
	return w.ended(p, follows, err)
}

// ended checks what follows from the end of a login.
func (w *loginWorld) ended(p *loginModel, follows fate, err error) error {
	proven := w.last == goodToken && w.good == p.tokens
	away := w.last == hangUp || w.last == otherCode
	if away {
		w.row++
	} else {
		w.row = 0
	}
	refused := w.last == refusal || w.last == refusalOfRequired || w.last == nullToken || w.last == wrongToken || away && w.row >= mostTurned
	had := w.session
	w.session = w.session || follows == admitted
	w.shut = follows == shutOut
	switch {
	case (follows == admitted) != proven || (err == nil) != proven:
		return fmt.Errorf("admitted is %v, and the server's proof is %v", follows == admitted, proven)
	case errors.Is(err, ErrAuthFailed) != refused:
		return fmt.Errorf("%w, and refused is %v", err, refused)
	case w.shut && had:
		return errors.New("a refusal ends a session that the servers keep")
	case refused && !had && !w.shut:
		return errors.New("a refused login is tried again at once, with one more session")
	case w.shut && !refused:
		return errors.New("the Link is over without a refusal")
	}
	return nil
}

func (p *loginModel) machine() *explore.Machine[loginWorld, loginMove] {
	return &explore.Machine[loginWorld, loginMove]{
		Moves: p.moves,
		Apply: p.apply,
		Must:  func(loginMove) bool { return false },
		Waits: func(*loginWorld) string { return "" },
		Tell: func(w *loginWorld, m loginMove) string {
			return fmt.Sprintf("%s: session %v, login open %v, turned away %d", loginMoves[m], w.session, w.open, w.turned)
		},
	}
}

// TestExploreLogin walks all that servers may answer to the logins of one Link.
func TestExploreLogin(t *testing.T) {
	t.Parallel()
	for tokens := range int8(3) {
		explore.Whole(t, (&loginModel{tokens: tokens + 1}).machine(), 1_000_000)
	}
}

// Each planted bug is found.
func TestExploreLoginFindsBugs(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		"null is a success":            "proof is false",
		"one code is no refusal":       "refused is true",
		"a refusal ends every session": "the servers keep",
		"a success forgives nothing":   "refused is false",

		"what comes between forgives nothing": "refused is false",
	} {
		explore.Finds(t, (&loginModel{tokens: 2, bug: bug}).machine(), 1_000_000, want)
	}
}

// A mechanism that never ends, or asks the server for nothing, is no login.
func TestMechanismsWithoutAProof(t *testing.T) {
	t.Parallel()
	d := dialogue{login: &played{tokens: 127}}
	s := d.begin()
	for range mostTokens {
		if s.over {
			t.Fatal(s.err)
		}
		s = d.heard(0, []byte("good"))
	}
	if !s.over || s.err == nil || errors.Is(s.err, ErrAuthFailed) {
		t.Errorf("after %d tokens: %+v", mostTokens, s)
	}
	d = dialogue{login: &played{}}
	if s := d.begin(); s.err == nil {
		t.Error("admitted without a question")
	}
}
