package kerberos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// oid is 1.2.840.113554.1.2.2, Kerberos 5, with its tag and length.
var oid = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02} //nolint:gochecknoglobals // a constant

const (
	checksumType   = 0x8003 // of RFC 4121, section 4.1.1
	mutual         = 0x02
	confidential   = 0x10
	integrity      = 0x20
	flagSubkey     = 0x04 // of a wrap token: made with the acceptor's subkey
	noLayer        = 1    // of RFC 4752: no security layer
	layerSize      = 4
	mutualRequired = 2 // of AP-REQ's options
)

// initiator makes and judges the tokens of one login; [negotiation] decides when. It does no I/O.
type initiator struct {
	negotiation

	request []byte
	sent    types.Authenticator
	key     types.EncryptionKey // of the ticket
	wraps   types.EncryptionKey // of the messages after the context stands
}

// newInitiator makes the AP-REQ: another one for every connection, as servers refuse one that they have
// seen.
func newInitiator(t *ticket, now time.Time) (*initiator, error) {
	a, err := types.NewAuthenticator(t.realm, t.name)
	if err != nil {
		return nil, fmt.Errorf("no authenticator: %w", err)
	}
	a.CTime, a.Cusec = now.UTC().Truncate(time.Second), now.Nanosecond()/1000
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], mutual|confidential|integrity)
	a.Cksum = types.Checksum{CksumType: checksumType, Checksum: sum}
	kind, err := crypto.GetEtype(t.key.KeyType)
	if err != nil {
		return nil, fmt.Errorf("a ticket with a key that is not supported: %w", err)
	}
	if err := a.GenerateSeqNumberAndSubKey(t.key.KeyType, kind.GetKeyByteSize()); err != nil {
		return nil, fmt.Errorf("no subkey: %w", err)
	}
	req, err := messages.NewAPReq(t.ticket, t.key, a)
	if err != nil {
		return nil, fmt.Errorf("no AP-REQ: %w", err)
	}
	types.SetFlag(&req.APOptions, mutualRequired)
	b, err := req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("no AP-REQ: %w", err)
	}
	body := append(append([]byte(nil), oid...), 1, 0)
	return &initiator{request: asn1tools.AddASNAppTag(append(body, b...), 0), sent: a, key: t.key, wraps: a.SubKey}, nil
}

// Format shows no key.
func (g *initiator) Format(s fmt.State, _ rune) { _, _ = fmt.Fprint(s, "login by GSSAPI") }

// Next answers the server's token. The server proves itself by its AP-REP, and says by a null
// token at the end that it takes the client.
func (g *initiator) Next(token []byte) (answer []byte, proven bool, err error) {
	return g.next(g, token)
}

// first is the AP-REQ.
func (g *initiator) first() []byte { return g.request }

// accept checks the AP-REP: only a server that has the key of its principal can make it.
func (g *initiator) accept(token []byte) (err error) {
	defer func() {
		if recover() != nil { // gokrb5 trusts that a ciphertext is long enough
			err = errors.New("the server's proof is wrong: it is too short")
		}
	}()
	if len(token) == 0 {
		return errors.New("the server offers no login by Kerberos: it has no Krb5LoginModule in the section Server of its JAAS file")
	}
	var outer asn1.RawValue
	if _, err := asn1.UnmarshalWithParams(token, &outer, "application,tag:0"); err != nil {
		return errors.New("the server's token is none of GSSAPI: perhaps it takes DIGEST-MD5 only")
	}
	body := outer.Bytes
	if len(body) < len(oid)+2 || string(body[:len(oid)]) != string(oid) {
		return errors.New("the server's token is none of Kerberos")
	}
	if id := body[len(oid) : len(oid)+2]; id[0] != 2 || id[1] != 0 {
		return fmt.Errorf("the server's token is no AP-REP, but %x (0300 is an error)", id)
	}
	var rep messages.APRep
	if err := rep.Unmarshal(body[len(oid)+2:]); err != nil {
		return fmt.Errorf("AP-REP: %w", err)
	}
	plain, err := crypto.DecryptEncPart(rep.EncPart, g.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return fmt.Errorf("the server's proof is wrong: %w", err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return fmt.Errorf("AP-REP: %w", err)
	}
	if part.CTime.Unix() != g.sent.CTime.Unix() || part.Cusec != g.sent.Cusec {
		return errors.New("the server's proof is that of another login")
	}
	if len(part.Subkey.KeyValue) > 0 {
		g.wraps = part.Subkey
	}
	return nil
}

// choose answers the layers that the server offers. ZooKeeper uses none.
func (g *initiator) choose(token []byte) (answer []byte, err error) {
	var offer gssapi.WrapToken
	if err := offer.Unmarshal(token, true); err != nil {
		return nil, fmt.Errorf("the server's offer of layers: %w", err)
	}
	if good, err := offer.Verify(g.wraps, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil || !good {
		return nil, fmt.Errorf("the server's offer of layers has a wrong checksum (%v)", err) //nolint:errorlint // often nil
	}
	if len(offer.Payload) != layerSize || offer.Payload[0]&noLayer == 0 {
		return nil, fmt.Errorf("the server wants a security layer (%x), which ZooKeeper does not have", offer.Payload)
	}
	kind, err := crypto.GetEtype(g.wraps.KeyType)
	if err != nil {
		return nil, err
	}
	reply := gssapi.WrapToken{
		EC:        uint16(kind.GetHMACBitLength() / 8), //nolint:gosec // some bytes
		SndSeqNum: uint64(g.sent.SeqNumber),            //nolint:gosec // never negative
		Flags:     offer.Flags & flagSubkey,
		Payload:   []byte{noLayer, 0, 0, 0},
	}
	if err := reply.SetCheckSum(g.wraps, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return reply.Marshal()
}
