package sasl

import "strings"

// directives are those of a response that may be there once at most. Others, among them
// nc, are ignored.
func directives() []string {
	return []string{
		"username", "realm", "nonce", "cnonce", "nonce-count", "qop", "digest-uri", "response", "maxbuf", "charset",
		"cipher", "authzid", "auth-param",
	}
}

// parse reads directives: name=value or name="value", with commas or white space between
// them. It reports false for a text that is none of that.
func parse(token []byte) (map[string]string, bool) {
	p := parser{rest: string(token), found: map[string]string{}}
	p.space()
	for p.rest != "" {
		if p.rest[0] == ',' {
			p.rest = p.rest[1:]
			p.space()
			continue
		}
		if !p.directive() {
			return nil, false
		}
	}
	return p.found, true
}

type parser struct {
	rest  string
	found map[string]string
}

const whiteSpace = "\r\n \t"

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, whiteSpace) }

// directive reads one directive and what separates it from the next.
func (p *parser) directive() bool {
	end := strings.IndexAny(p.rest, "=,"+whiteSpace)
	if end < 0 {
		return p.keyAlone(p.rest)
	}
	key := p.rest[:end]
	p.rest = p.rest[end:]
	if p.rest[0] != '=' && p.rest[0] != ',' {
		p.space()
	}
	if key == "" || p.rest == "" || p.rest[0] != '=' {
		return false
	}
	p.rest = p.rest[1:]
	if p.space(); p.rest == "" {
		return false // a key without a value
	}
	value, ok := p.value()
	if !ok || !p.keep(key, value) {
		return false
	}
	if p.rest != "" {
		p.rest = p.rest[1:]
		p.space()
	}
	return true
}

// keyAlone handles a key at the end that has no value: it counts as an empty one.
func (p *parser) keyAlone(key string) bool {
	p.rest = ""
	return p.keep(key, "")
}

// value reads a value. It leaves the separator behind it.
func (p *parser) value() (string, bool) {
	if p.rest[0] != '"' {
		end := strings.IndexAny(p.rest, ","+whiteSpace)
		if end < 0 {
			end = len(p.rest)
		}
		v := p.rest[:end]
		p.rest = p.rest[end:]
		return v, true
	}
	var v strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '"':
			p.rest = p.rest[i+1:]
			return v.String(), p.rest == "" || strings.ContainsRune(","+whiteSpace, rune(p.rest[0]))
		case '\\':
			if i++; i == len(p.rest) {
				return "", false
			}
		}
		v.WriteByte(p.rest[i])
	}
	return "", false // the quote is not closed
}

// keep notes a directive. It reports false for the second of a kind.
func (p *parser) keep(key, value string) bool {
	for _, known := range directives() {
		if strings.EqualFold(key, known) {
			if _, twice := p.found[known]; twice {
				return false
			}
			p.found[known] = value
		}
	}
	return true
}
