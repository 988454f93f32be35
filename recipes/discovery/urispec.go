package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// uriPart is one part of a template: a text, or the name of a variable.
type uriPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

type uriParts struct {
	Parts []uriPart `json:"parts"`
}

// URI is the address that callers use: that of URISpec, or "<scheme>://<address>:<port>"
// without one. The variables are Curator's: scheme, name, id, address, port, ssl-port,
// registration-time-utc and service-type; "[" and "]" stand for braces. The scheme is https if
// there is a TLSPort, otherwise http. A variable that is none of these is empty. The error is
// that of a template with braces that do not match.
//
// Curator's buildUriSpec is "" for an instance without a template.
func (i ServiceInstance) URI() (string, error) {
	scheme, port := "http", i.Port
	if i.TLSPort != 0 {
		scheme, port = "https", i.TLSPort
	}
	if i.URISpec == "" {
		return scheme + "://" + net.JoinHostPort(i.Address, strconv.Itoa(port)), nil
	}
	parts, err := parseURISpec(i.URISpec)
	if err != nil {
		return "", fmt.Errorf("discovery: %w", err)
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Variable {
			p.Value = i.variable(p.Value, scheme)
		}
		b.WriteString(p.Value)
	}
	return b.String(), nil
}

// variable is the value of a variable of a template.
func (i ServiceInstance) variable(name, scheme string) string {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	switch name {
	case "scheme":
		return scheme
	case "name":
		return i.Service
	case "id":
		return i.ID
	case "address":
		return i.Address
	case "port":
		return number(int64(i.Port))
	case "ssl-port":
		return number(int64(i.TLSPort))
	case "registration-time-utc":
		return number(millis(i.Registered))
	case "service-type":
		return strings.ToLower(i.Type.String())
	case "[":
		return "{"
	case "]":
		return "}"
	default:
		return ""
	}
}

var errBraces = errors.New("the braces do not match")

// parseURISpec returns the parts of a template (UriSpec's constructor).
func parseURISpec(text string) (parts []uriPart, err error) {
	for rest := text; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		switch {
		case at < 0:
			return append(parts, uriPart{Value: rest}), nil
		case at > 0:
			parts = append(parts, uriPart{Value: rest[:at]})
			rest = rest[at:]
			continue
		}
		end := strings.IndexAny(rest[1:], "{}") + 1
		if rest[0] == '}' || end == 0 || rest[end] == '{' {
			return nil, fmt.Errorf("URISpec %q: %w", text, errBraces)
		}
		parts = append(parts, uriPart{strings.TrimSpace(rest[1:end]), true})
		rest = rest[end+1:]
	}
	return parts, nil
}

// The template that Spring writes, and nearly everybody after it.
const (
	usualSpec  = "{scheme}://{address}:{port}"
	usualParts = `{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true}]}`
)

// uriSpecOf is the template of a uriSpec, "" if there is none that a template can say.
func uriSpecOf(value json.RawMessage) string {
	if string(value) == usualParts {
		return usualSpec // costs no memory in each instance
	}
	var spec uriParts
	if value == nil || json.Unmarshal(value, &spec) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range spec.Parts {
		switch {
		case !p.Variable:
			for _, c := range p.Value {
				switch c {
				case '{':
					b.WriteString("{[}")
				case '}':
					b.WriteString("{]}")
				default:
					b.WriteRune(c)
				}
			}
		case strings.ContainsAny(p.Value, "{}"):
			return ""
		default:
			b.WriteString("{" + p.Value + "}")
		}
	}
	return b.String()
}

// uriSpecFor is the uriSpec of a template.
func uriSpecFor(text string) (json.RawMessage, error) {
	if text == "" {
		return null, nil
	}
	parts, err := parseURISpec(text)
	if err != nil {
		return nil, err
	}
	return marshalled(uriParts{parts}), nil
}
