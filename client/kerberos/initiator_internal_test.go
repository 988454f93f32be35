package kerberos

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

const realm = "PROBE.TEST"

// acceptor is a server of Kerberos, with what a test changes.
type acceptor struct {
	key    types.EncryptionKey // of the ticket
	auth   types.Authenticator // that the client has sent
	subkey bool                // it makes one of its own

	anotherTime bool
	wrongKey    bool
	layers      byte
	tamper      bool
}

// begin makes a ticket, a login with it, and the acceptor of that.
func begin(t *testing.T) (*initiator, *acceptor) {
	t.Helper()
	kt := keytab.New()
	if err := kt.AddEntry("zookeeper/zk1", realm, "of the server", time.Now(), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
		t.Fatal(err)
	}
	name, server := types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "docent"), types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "zookeeper/zk1")
	now := time.Now().UTC()
	tkt, key, err := messages.NewTicket(name, realm, server, realm, types.NewKrbFlags(), kt, etypeID.AES256_CTS_HMAC_SHA1_96, 1, now, now, now.Add(time.Hour), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	g, err := newInitiator(&ticket{ticket: tkt, key: key, realm: realm, name: name, from: now, to: now.Add(time.Hour)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first, proven, err := g.Next(nil)
	if err != nil || proven {
		t.Fatal(proven, err)
	}
	var outer asn1.RawValue
	if _, err := asn1.UnmarshalWithParams(first, &outer, "application,tag:0"); err != nil {
		t.Fatal(err)
	}
	var req messages.APReq
	if err := req.Unmarshal(outer.Bytes[len(oid)+2:]); err != nil {
		t.Fatal(err)
	}
	if !types.IsFlagSet(&req.APOptions, mutualRequired) {
		t.Error("no mutual authentication is asked for")
	}
	if good, err := req.Verify(kt, 5*time.Minute, types.HostAddress{}, nil); err != nil || !good {
		t.Fatal("the server would refuse the AP-REQ: ", err)
	}
	if sum := req.Authenticator.Cksum; sum.CksumType != checksumType || hex.EncodeToString(sum.Checksum) != "10000000"+strings.Repeat("00", 16)+"32000000" {
		t.Errorf("checksum %x of type %x", sum.Checksum, sum.CksumType)
	}
	return g, &acceptor{key: key, auth: req.Authenticator, layers: noLayer}
}

// reply is the AP-REP.
func (a *acceptor) reply(t *testing.T) []byte {
	t.Helper()
	type part struct {
		CTime  time.Time           `asn1:"generalized,explicit,tag:0"`
		Cusec  int                 `asn1:"explicit,tag:1"`
		Subkey types.EncryptionKey `asn1:"optional,explicit,tag:2"`
	}
	p := part{CTime: a.auth.CTime, Cusec: a.auth.Cusec}
	if a.anotherTime {
		p.CTime = p.CTime.Add(time.Second)
	}
	if a.subkey {
		p.Subkey = newKey(t)
	}
	plain, err := asn1.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	key := a.key
	if a.wrongKey {
		key = newKey(t)
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(plain, asnAppTag.EncAPRepPart), key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		t.Fatal(err)
	}
	body, err := asn1.Marshal(messages.APRep{PVNO: 5, MsgType: msgtype.KRB_AP_REP, EncPart: sealed})
	if err != nil {
		t.Fatal(err)
	}
	a.key = a.auth.SubKey
	if a.subkey {
		a.key = p.Subkey
	}
	return wrapped(2, 0, asn1tools.AddASNAppTag(body, asnAppTag.APREP))
}

func wrapped(id1, id2 byte, body []byte) []byte {
	return asn1tools.AddASNAppTag(append(append(append([]byte(nil), oid...), id1, id2), body...), 0)
}

func newKey(t *testing.T) types.EncryptionKey {
	t.Helper()
	kind, err := crypto.GetEtype(etypeID.AES256_CTS_HMAC_SHA1_96)
	if err != nil {
		t.Fatal(err)
	}
	key, err := types.GenerateEncryptionKey(kind)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// offer is the token with the layers.
func (a *acceptor) offer(t *testing.T) []byte {
	t.Helper()
	w := gssapi.WrapToken{Flags: 1, EC: 12, SndSeqNum: 7, Payload: []byte{a.layers, 1, 0, 0}}
	if a.subkey {
		w.Flags |= flagSubkey
	}
	if err := w.SetCheckSum(a.key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		t.Fatal(err)
	}
	if a.tamper {
		w.Payload[1] ^= 1
	}
	b, err := w.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// takes reports whether the acceptor takes the client's choice.
func (a *acceptor) takes(choice []byte) error {
	var w gssapi.WrapToken
	if err := w.Unmarshal(choice, false); err != nil {
		return err
	}
	if good, err := w.Verify(a.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil || !good {
		return fmt.Errorf("checksum: %v", err) //nolint:errorlint // often nil
	}
	if string(w.Payload) != "\x01\x00\x00\x00" || (w.Flags&flagSubkey != 0) != a.subkey {
		return fmt.Errorf("payload %x, flags %x", w.Payload, w.Flags)
	}
	return nil
}

func TestInitiator(t *testing.T) {
	t.Parallel()
	for _, subkey := range []bool{false, true} {
		g, a := begin(t)
		a.subkey = subkey
		if answer, proven, err := g.Next(a.reply(t)); answer == nil || len(answer) != 0 || proven || err != nil {
			t.Fatalf("after AP-REP: %x, %v, %v; want an empty token", answer, proven, err)
		}
		choice, proven, err := g.Next(a.offer(t))
		if err != nil || proven {
			t.Fatal(proven, err)
		}
		if err := a.takes(choice); err != nil {
			t.Error(err)
		}
		if answer, proven, err := g.Next(nil); answer != nil || !proven || err != nil {
			t.Errorf("at the end: %x, %v, %v", answer, proven, err)
		}
		if _, proven, err := g.Next(nil); proven || err == nil {
			t.Error("there is something behind the end")
		}
	}
}

// A server that does not prove itself is no server, whatever it says.
func TestInitiatorRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(a *acceptor)
		reply  func(token []byte) []byte
		want   string
	}{
		{"null", nil, func([]byte) []byte { return nil }, "offers no login by Kerberos"},
		{"empty", nil, func([]byte) []byte { return []byte{} }, "offers no login by Kerberos"},
		{"a challenge of DIGEST-MD5", nil, func([]byte) []byte { return []byte(`realm="zk-sasl-md5"`) }, "DIGEST-MD5"},
		{"another mechanism", nil, func([]byte) []byte { return asn1tools.AddASNAppTag(make([]byte, 20), 0) }, "none of Kerberos"},
		{"an error", nil, func([]byte) []byte { return wrapped(3, 0, nil) }, "0300 is an error"},
		{"no AP-REP", nil, func([]byte) []byte { return wrapped(2, 0, []byte{1, 2, 3}) }, "AP-REP"},
		{"a short token", nil, func([]byte) []byte { return asn1tools.AddASNAppTag(oid, 0) }, "none of Kerberos"},
		{"another key", func(a *acceptor) { a.wrongKey = true }, nil, "proof is wrong"},
		{"another login", func(a *acceptor) { a.anotherTime = true }, nil, "another login"},
	} {
		g, a := begin(t)
		if tt.change != nil {
			tt.change(a)
		}
		token := a.reply(t)
		if tt.reply != nil {
			token = tt.reply(token)
		}
		answer, proven, err := g.Next(token)
		if answer != nil || proven || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %x, %v, %v; want %q", tt.name, answer, proven, err, tt.want)
		}
		if _, proven, _ := g.Next(nil); proven {
			t.Errorf("%s: proven later", tt.name)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(a *acceptor)
		want   string
	}{
		{"integrity only", func(a *acceptor) { a.layers = 2 }, "security layer"},
		{"tampered with", func(a *acceptor) { a.tamper = true }, "wrong checksum"},
		{"with the key of the ticket", func(a *acceptor) { a.key = newKey(t) }, "wrong checksum"},
	} {
		g, a := begin(t)
		if _, _, err := g.Next(a.reply(t)); err != nil {
			t.Fatal(err)
		}
		tt.change(a)
		if answer, proven, err := g.Next(a.offer(t)); answer != nil || proven || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %x, %v, %v; want %q", tt.name, answer, proven, err, tt.want)
		}
	}
	g, a := begin(t)
	_, _, first := g.Next(a.reply(t))
	_, _, second := g.Next(a.offer(t))
	if _, proven, err := g.Next([]byte("more")); errors.Join(first, second) != nil || proven || err == nil {
		t.Error("a token behind the end counts as one")
	}
}

// Two logins with one ticket differ, as a server refuses an AP-REQ that it has seen.
func TestInitiatorsDiffer(t *testing.T) {
	t.Parallel()
	g, _ := begin(t)
	server := types.NewPrincipalName(nametype.KRB_NT_SRV_INST, "zookeeper/zk1")
	tkt := &ticket{ticket: messages.Ticket{Realm: realm, SName: server}, key: g.key, realm: realm, name: types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "docent")}
	one, err := newInitiator(tkt, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	two, err := newInitiator(tkt, time.Now())
	if err != nil || string(one.request) == string(two.request) {
		t.Error("the same AP-REQ twice", err)
	}
	if text := fmt.Sprintf("%v %+v %#v", one, one, one); strings.Contains(text, hex.EncodeToString(one.key.KeyValue)) || text != "login by GSSAPI login by GSSAPI login by GSSAPI" {
		t.Error(text)
	}
}

// A ciphertext that is too short is refused, and does not end the process.
func TestShortCipher(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("Next panics: %v", r)
				}
			}()
			g, a := begin(t)
			body, err := asn1.Marshal(messages.APRep{PVNO: 5, MsgType: msgtype.KRB_AP_REP, EncPart: types.EncryptedData{EType: a.key.KeyType, Cipher: make([]byte, n)}})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := g.Next(wrapped(2, 0, asn1tools.AddASNAppTag(body, asnAppTag.APREP))); err == nil {
				t.Error("accepted")
			}
		})
	}
}
