package kerberos

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"

	"github.com/docent-go/docent/client"
)

// kdcError is what gokrb5 says of an exchange with a KDC.
type kdcError struct {
	err    error
	client bool // in the exchange that proves who the client is
}

func (e *kdcError) Error() string { return e.err.Error() }
func (e *kdcError) Unwrap() error { return e.err }

// codeIn finds the number of a KRB-ERROR. gokrb5 keeps it in the text only.
var codeIn = regexp.MustCompile(`KRB Error: \((\d+)\)`)

// code is that of the KDC's answer, 0 if no KDC has answered with one.
func (e *kdcError) code() int32 {
	if m := codeIn.FindStringSubmatch(e.err.Error()); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 32)
		return int32(n)
	}
	return 0
}

// explained says what to do about an error, and whether it is a refusal.
func explained(err error, spn, host string) error {
	var kdc *kdcError
	if !errors.As(err, &kdc) {
		return err
	}
	refused := func(remedy string) error {
		return fmt.Errorf("%w: the KDC refuses the client: %s: %w", client.ErrAuthFailed, remedy, err)
	}
	switch code := kdc.code(); {
	case kdc.client && code == errorcode.KDC_ERR_PREAUTH_FAILED:
		return refused("the keytab or the password is wrong")
	case kdc.client && code == errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return refused("it does not know the principal")
	case kdc.client && (code == errorcode.KDC_ERR_CLIENT_REVOKED || code == errorcode.KDC_ERR_KEY_EXPIRED || code == errorcode.KDC_ERR_NAME_EXP):
		return refused("the principal is locked, or has expired")
	case kdc.client && code == 0 && strings.Contains(err.Error(), "Decrypting_Error"):
		return refused("the keytab or the password is wrong")
	case code == errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN && net.ParseIP(host) != nil:
		return fmt.Errorf("the KDC does not know %s: the connect string has an address; write the host's name there, or use kerberos.WithServerPrincipal: %w", spn, err)
	case code == errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return fmt.Errorf("the KDC does not know %s: use the host's name of the server's principal, kerberos.WithService or kerberos.WithServerPrincipal: %w", spn, err)
	case code == errorcode.KRB_AP_ERR_SKEW || strings.Contains(err.Error(), "clock skew"):
		return fmt.Errorf("the clocks of this host and of the KDC differ by more than 5 minutes: %w", err)
	case code == 0:
		return fmt.Errorf("no ticket from a KDC: %w", err)
	default:
		return fmt.Errorf("the KDC gives no ticket: %w", err)
	}
}
