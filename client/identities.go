package client

import (
	"fmt"
	"strings"

	"github.com/docent-go/docent/client/internal/shown"
)

// mostIdentities bounds how many identities one error names.
const mostIdentities = 5

// identities are the schemes that WithAuth presents, with the user name for scheme
// digest. ACLs show that name anyway. It is "" without WithAuth, and no secret is
// part of it.
func (c *config) identities() string {
	var said []string
	for i, a := range c.auth {
		if i == mostIdentities {
			said = append(said, fmt.Sprintf("and %d more", len(c.auth)-i))
			break
		}
		what := "scheme " + shown.Short(a.Scheme)
		if user, _, ok := strings.Cut(string(a.Credentials), ":"); ok && a.Scheme == "digest" {
			what = fmt.Sprintf("digest user %q", shown.Short(user))
		}
		said = append(said, what)
	}
	return strings.Join(said, ", ")
}

// noRights says what to do about a refusal for lack of rights. A server takes a wrong
// password of scheme digest for another identity and does not say so
// (DigestAuthenticationProvider hashes the password that it is given).
func noRights(identities string) string {
	if identities == "" {
		return " (the ACL of the node or of its parent does not allow it, and this client presents no credentials: pass them with client.WithAuth, or have the ACL changed)"
	}
	return fmt.Sprintf(" (the ACL of the node or of its parent does not allow it to %s; a wrong password looks the same, because a server takes it for another identity: check client.WithAuth, or have the ACL changed)", identities)
}
