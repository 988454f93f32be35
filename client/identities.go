package client

import (
	"fmt"
	"strings"
)

// mostIdentities bounds what one error says of them.
const mostIdentities = 5

// identities are the schemes that WithAuth presents, with the user of a digest,
// which stands in ACLs anyway. It is "" without WithAuth. No secret is part of it.
func (c *config) identities() string {
	var said []string
	for i, a := range c.auth {
		if i == mostIdentities {
			said = append(said, fmt.Sprintf("and %d more", len(c.auth)-i))
			break
		}
		what := "scheme " + shortened(a.Scheme)
		if user, _, ok := strings.Cut(string(a.Credentials), ":"); ok && a.Scheme == "digest" {
			what = fmt.Sprintf("digest user %q", shortened(user))
		}
		said = append(said, what)
	}
	return strings.Join(said, ", ")
}

// noRights is the remedy for a refusal for lack of rights. A server takes a
// wrong password of scheme digest for another identity and says nothing
// (DigestAuthenticationProvider hashes what it is given).
func noRights(identities string) string {
	if identities == "" {
		return " (the ACL of the node or of its parent does not allow it, and this client presents no credentials: pass them with client.WithAuth, or have the ACL changed)"
	}
	return fmt.Sprintf(" (the ACL of the node or of its parent does not allow it to %s; a wrong password looks the same, because a server takes it for another identity: check client.WithAuth, or have the ACL changed)", identities)
}
