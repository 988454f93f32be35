package sasl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// challenge is what a server has sent first.
type challenge struct {
	realm, nonce string
	utf8         bool
}

// parseChallenge reads a digest-challenge of RFC 2831, section 2.1.1.
func parseChallenge(token []byte) (challenge, error) {
	var realms, nonces, algorithms, qops, charsets []string
	known := map[string]*[]string{"realm": &realms, "nonce": &nonces, "algorithm": &algorithms, "qop": &qops, "charset": &charsets}
	err := directives(string(token), func(name, value string) {
		if list := known[name]; list != nil {
			*list = append(*list, value)
		}
	})
	if err != nil {
		return challenge{}, err
	}
	once := func(values []string, want string) bool { return len(values) == 1 && strings.EqualFold(values[0], want) }
	switch {
	case len(nonces) != 1 || nonces[0] == "":
		return challenge{}, fmt.Errorf("it has %d nonces, and must have one", len(nonces))
	case !once(algorithms, "md5-sess"):
		return challenge{}, errors.New("its algorithm is not md5-sess")
	case len(charsets) > 0 && !once(charsets, "utf-8"):
		return challenge{}, errors.New("its charset is not utf-8")
	case len(qops) > 0 && !slices.ContainsFunc(qops, offersAuth): // none means auth
		return challenge{}, errors.New("it offers no login without a security layer (qop auth)")
	}
	c := challenge{realm: realm, nonce: nonces[0], utf8: len(charsets) == 1}
	if len(realms) > 0 && !slices.Contains(realms, realm) {
		c.realm = realms[0]
	}
	return c, nil
}

// offersAuth reports whether a list of qop-values has auth.
func offersAuth(qops string) bool {
	for qop := range strings.SplitSeq(qops, ",") {
		if strings.EqualFold(strings.TrimSpace(qop), "auth") {
			return true
		}
	}
	return false
}

// directives calls f with every name=value of a list with commas. A value is a token or a
// quoted-string. Names come in lower case.
func directives(s string, f func(name, value string)) error {
	const blanks = " \t\r\n"
	for {
		s = strings.TrimLeft(s, blanks+",")
		if s == "" {
			return nil
		}
		name, rest, found := strings.Cut(s, "=")
		name = strings.TrimSpace(name)
		if !found || name == "" || strings.ContainsAny(name, blanks+`,"`) {
			return errors.New("it is no list of name=value")
		}
		value, rest, err := value(strings.TrimLeft(rest, blanks))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s = strings.TrimLeft(rest, blanks)
		if s != "" && s[0] != ',' {
			return fmt.Errorf("%s: there is no comma behind its value", name)
		}
		f(strings.ToLower(name), value)
	}
}

// value splits s behind the value that it begins with.
func value(s string) (value, rest string, err error) {
	if s == "" || s[0] != '"' {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], nil
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		_ = b.WriteByte(s[i])
	}
	return "", "", errors.New("its quotation has no end")
}
