// Package access decides what identities may do: it checks access control lists, and
// compares them with what a connection has proved.
package access

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // the digest scheme of ZooKeeper is SHA-1
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/docent-go/docent/internal/zkserver/jute"
	"github.com/docent-go/docent/internal/zkserver/sasl"
	"github.com/docent-go/docent/internal/zoodefs"
)

// ID is an identity that a connection has proved.
type ID struct{ Scheme, Name string }

// DigestID returns the identity that "user:password" proves.
func DigestID(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials)) //nolint:gosec // the digest scheme of ZooKeeper is SHA-1
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// Permitted reports whether list grants any of perms to any of ids.
func Permitted(list []jute.ACL, perms int32, ids []ID) bool {
	if len(list) == 0 {
		return true
	}
	for _, id := range ids {
		if id.Scheme == "super" {
			return true
		}
	}
	for _, a := range list {
		if a.Perms&perms == 0 {
			continue
		}
		if a.Scheme == "world" && a.ID == "anyone" {
			return true
		}
		for _, id := range ids {
			if id.Scheme == a.Scheme && matchID(a.Scheme, id.Name, a.ID) {
				return true
			}
		}
	}
	return false
}

func matchID(scheme, id, want string) bool {
	switch scheme {
	case "digest":
		return id == want
	case "sasl":
		return id == want || id == "super"
	case "ip":
		return matchIP(id, want)
	default:
		return false
	}
}

func matchIP(id, want string) bool {
	addr, ok := parseIP(id)
	if !ok {
		return false
	}
	prefix, ok := parseIPRange(want)
	return ok && prefix.Contains(addr)
}

// parseIPRange reads "address" or "address/bits".
func parseIPRange(s string) (netip.Prefix, bool) {
	text, bits, ranged := strings.Cut(s, "/")
	addr, ok := parseIP(text)
	if !ok {
		return netip.Prefix{}, false
	}
	n := addr.BitLen()
	if ranged {
		var err error
		if n, err = strconv.Atoi(bits); err != nil {
			return netip.Prefix{}, false
		}
	}
	p, err := addr.Prefix(n)
	return p, err == nil
}

// parseIP reads an address as the real server does. An IPv4 address may have
// leading zeros. An IPv6 address may have neither a zone nor an IPv4 part.
func parseIP(s string) (netip.Addr, bool) {
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		return addr, err == nil && !strings.ContainsAny(s, ".%")
	}
	parts := strings.Split(s, ".")
	var b [4]byte
	if len(parts) != len(b) {
		return netip.Addr{}, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || n > 255 {
			return netip.Addr{}, false
		}
		b[i] = byte(n)
	}
	return netip.AddrFrom4(b), true
}

// Schemes says what a server knows besides the schemes of every server.
type Schemes struct {
	IPv6 bool // the ip scheme takes addresses of IPv6
	SASL bool // there is the scheme sasl
}

// authenticates reports whether identities of a scheme prove who a client is.
func (s Schemes) authenticates(scheme string) bool {
	return scheme == "digest" || scheme == "sasl" && s.SASL
}

// FixACL checks a list for a node and replaces the scheme "auth" by the identities
// of the client.
func (s Schemes) FixACL(list []jute.ACL, ids []ID) ([]jute.ACL, zoodefs.Code) {
	var out []jute.ACL
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			continue
		}
		switch {
		case !a.HasScheme:
			return nil, zoodefs.CodeInvalidACL
		case a.Scheme == "world" && !a.HasID:
			return nil, zoodefs.CodeMarshallingError // a null pointer in the real server
		case a.Scheme == "world" && a.ID == "anyone":
			out = append(out, a)
		case a.Scheme == "auth":
			valid := false
			for _, id := range ids {
				if s.authenticates(id.Scheme) {
					valid = true
					out = append(out, jute.ACL{
						Perms: a.Perms, Scheme: id.Scheme, ID: id.Name, HasScheme: true, HasID: true,
					})
				}
			}
			if !valid {
				return nil, zoodefs.CodeInvalidACL
			}
		default:
			if code := s.checkID(a); code != zoodefs.CodeOK {
				return nil, code
			}
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, zoodefs.CodeInvalidACL
	}
	return out, zoodefs.CodeOK
}

func (s Schemes) checkID(a jute.ACL) zoodefs.Code {
	var valid bool
	switch a.Scheme {
	case "sasl":
		if !s.SASL {
			return zoodefs.CodeInvalidACL
		}
		valid = sasl.ValidName(a.ID)
	case "digest":
		// Java's split drops empty strings at the end.
		parts := strings.Split(strings.TrimRight(a.ID, ":"), ":")
		valid = len(parts) == 2
	case "ip":
		_, valid = parseIPRange(a.ID)
		valid = valid && (s.IPv6 || !strings.Contains(a.ID, ":"))
	default:
		return zoodefs.CodeInvalidACL
	}
	switch {
	case !a.HasID:
		return zoodefs.CodeMarshallingError // a null pointer in the real server
	case !valid:
		return zoodefs.CodeInvalidACL
	default:
		return zoodefs.CodeOK
	}
}

// HideDigests removes the secrets of digest entries, for readers without ADMIN.
func HideDigests(list []jute.ACL) []jute.ACL {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Scheme == "digest" {
			user, _, _ := strings.Cut(out[i].ID, ":")
			out[i].ID = user + ":x"
		}
	}
	return out
}

// Add returns ids with one more at the place where a real server has it. That server
// keeps the identities of a connection in a hash table (ServerCnxn.authInfo). Its
// order shows in the ACL that a node gets for the scheme "auth", and in the answer
// to whoAmI. The slice ids stays as it is, because requests in flight hold it.
func Add(ids []ID, id ID) []ID {
	if slices.Contains(ids, id) {
		return ids
	}
	ids = append(slices.Clone(ids), id)
	bins := uint32(16)
	for len(ids) >= int(bins)*3/4 { // it doubles when it is three quarters full
		bins *= 2
	}
	// Identities in one bin stay in the order in which they came.
	slices.SortStableFunc(ids, func(a, b ID) int { return cmp.Compare(a.bin(bins), b.bin(bins)) })
	return ids
}

// bin is the place of the identity in a java.util.concurrent.ConcurrentHashMap with
// the given number of bins.
func (id ID) bin(bins uint32) uint32 {
	h := uint32(17) // as org.apache.zookeeper.data.Id
	h = 37*h + javaHash(id.Scheme)
	h = 37*h + javaHash(id.Name)
	return (h ^ h>>16) & (bins - 1)
}

// javaHash is String.hashCode.
func javaHash(s string) uint32 {
	var h uint32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}
