package sasl_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/docent-go/docent/client/internal/sasl"
	"github.com/docent-go/docent/internal/explore"
)

// digestWorld is a login, and a server or somebody between that answers it.
type digestWorld struct {
	login   sasl.Digest
	sent    int8   // tokens of the client
	answer  string // the newest
	honest  bool   // the server has challenged, and knows the password
	nonce   string
	proven  bool
	checked bool // the server has answered with the right proof, after the client's answer
	ended   bool
}

type digestMove int8

const (
	null digestMove = iota
	empty
	challenged
	challengedByAnother // who does not know the password
	challengedBadly
	proved
	provedByAnother  // with a guess of the password
	provedOtherNonce // the proof of another login
	echoed           // the client's own answer
	echoedResponse   // its response as a proof
)

var digestMoves = []string{
	"null", "an empty token", "a challenge", "a stranger's challenge", "a bad challenge", "the proof", "a stranger's proof",
	"the proof of another login", "the client's answer", "the client's response",
}

const (
	exploredUser, exploredPassword = "docent", "s3cret"
	ownNonce, otherNonce           = "nonce of the server", "nonce of another login"
)

// token is what the client hears.
func (w *digestWorld) token(move digestMove) []byte {
	challenge := func(nonce string) []byte {
		return fmt.Appendf(nil, `realm="zk-sasl-md5",nonce="%s",charset=utf-8,algorithm=md5-sess`, nonce)
	}
	proof := func(password, nonce string) []byte {
		return []byte("rspauth=" + reference(exploredUser, "zk-sasl-md5", password, nonce, seenNonce, ":zookeeper/zk-sasl-md5"))
	}
	switch move {
	case empty:
		return []byte{}
	case challenged, challengedByAnother:
		return challenge(ownNonce)
	case challengedBadly:
		return []byte(`nonce="n",algorithm=md5`)
	case proved:
		return proof(exploredPassword, w.nonce)
	case provedByAnother:
		return proof("guess", w.nonce)
	case provedOtherNonce:
		return proof(exploredPassword, otherNonce)
	case echoed:
		return []byte(w.answer)
	case echoedResponse:
		if i := bytes.Index([]byte(w.answer), []byte("response=")); i >= 0 {
			return []byte("rspauth=" + w.answer[i+9:i+9+hex.EncodedLen(md5.Size)])
		}
	}
	return nil
}

type digestModel struct{ bug string }

func (p *digestModel) moves(w *digestWorld, moves []digestMove) []digestMove {
	switch {
	case w.sent == 0: // the client begins
		return append(moves, null)
	case w.ended:
		return moves
	}
	for m := null; m <= echoedResponse; m++ {
		if m != proved || w.honest { // who does not know the password cannot
			moves = append(moves, m)
		}
	}
	return moves
}

func (p *digestModel) apply(w *digestWorld, move digestMove) error {
	first, token := w.sent == 0, w.token(move)
	answered := w.answer != ""
	switch move {
	case challenged:
		w.honest, w.nonce = true, ownNonce
	case challengedByAnother:
		w.honest, w.nonce = false, ownNonce
	}
	answer, proven, err := w.login.Next(token)
	switch {
	case p.bug == "null after the answer is a success" && answered && len(token) == 0:
		proven, err = true, nil
	case p.bug == "the response is a proof" && move == echoedResponse && answered:
		proven, err = true, nil
	case p.bug == "goes on after a bad token" && err != nil && move == challengedBadly && !answered:
		w.login = *sasl.NewDigest(exploredUser, exploredPassword, seenNonce)
		answer, proven, err = w.login.Next(nil)
	}
	if answer != nil {
		w.sent++
		w.answer = string(answer)
	}
	w.checked = w.checked || move == proved && answered
	w.proven = w.proven || proven
	w.ended = w.ended || proven || err != nil
	switch {
	case proven != (move == proved && answered):
		return fmt.Errorf("proven is %v", proven)
	case err == nil && !proven && answer == nil:
		return errors.New("it neither goes on nor ends")
	case err != nil && answer != nil, proven && answer != nil:
		return errors.New("something is sent behind the end")
	case first != (answer != nil && len(answer) == 0):
		return errors.New("the client must begin with an empty token, and only begin")
	case w.sent > 2:
		return errors.New("the client answers twice")
	}
	return nil
}

func (p *digestModel) machine() *explore.Machine[digestWorld, digestMove] {
	return &explore.Machine[digestWorld, digestMove]{
		Start: digestWorld{login: *sasl.NewDigest(exploredUser, exploredPassword, seenNonce)},
		Moves: p.moves,
		Apply: p.apply,
		Must:  func(digestMove) bool { return false },
		Waits: func(*digestWorld) string { return "" },
		Tell: func(w *digestWorld, m digestMove) string {
			return fmt.Sprintf("%s: %d tokens sent, proven %v, ended %v", digestMoves[m], w.sent, w.proven, w.ended)
		},
	}
}

// TestExploreDigest walks all that a server, or somebody who says to be one, may answer.
func TestExploreDigest(t *testing.T) {
	t.Parallel()
	explore.Whole(t, (&digestModel{}).machine(), 100_000)
}

// Each planted bug is found.
func TestExploreDigestFindsBugs(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		"null after the answer is a success": "proven is true",
		"the response is a proof":            "proven is true",
		"goes on after a bad token":          "only begin",
	} {
		explore.Finds(t, (&digestModel{bug: bug}).machine(), 100_000, want)
	}
}
