package kerberos

import "errors"

// negotiation decides what the client's side of SASL GSSAPI (RFC 4752) does with each token. It
// has no I/O and no keys: tokens makes and judges what is in them.
//
//	stage     | the token is            | the client           | next stage
//	fresh     | anything                | sends its AP-REQ     | asked
//	asked     | an AP-REP that is right | sends an empty token | mutualled
//	mutualled | an offer that is right  | sends its choice     | chosen
//	chosen    | empty, or null          | is let in            | over
//	any       | anything else           | fails                | over
type negotiation struct{ stage stage }

type stage int

const (
	fresh     stage = iota
	asked           // AP-REQ sent
	mutualled       // the server's AP-REP was right, and an empty token sent
	chosen          // no security layer chosen
	over
)

// tokens are those of one login.
type tokens interface {
	// first is the AP-REQ.
	first() []byte
	// accept says what is wrong with an AP-REP.
	accept(token []byte) error
	// choose answers an offer of layers, or says what is wrong with it.
	choose(token []byte) (answer []byte, err error)
}

func (n *negotiation) next(of tokens, token []byte) (answer []byte, proven bool, err error) {
	at := n.stage
	n.stage = over
	switch at {
	case fresh:
		n.stage = asked
		return of.first(), false, nil
	case asked:
		if err := of.accept(token); err != nil {
			return nil, false, err
		}
		n.stage = mutualled
		return []byte{}, false, nil
	case mutualled:
		if answer, err = of.choose(token); err != nil {
			return nil, false, err
		}
		n.stage = chosen
		return answer, false, nil
	case chosen:
		if len(token) > 0 {
			return nil, false, errors.New("the server goes on behind the end of the login")
		}
		return nil, true, nil
	}
	return nil, false, errors.New("a token after the end of the login")
}

// Refused is what is likely wrong if the server refuses the newest answer.
func (n *negotiation) Refused() string {
	switch n.stage {
	case asked:
		return "its keytab may have no key of the principal that the ticket is for, or an old one, or the clocks differ by more than 5 minutes; its log says which"
	case chosen:
		return "it knows the principal, and does not let it in: look at kerberos.removeHostFromPrincipal and auth_to_local there"
	}
	return ""
}
