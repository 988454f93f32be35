package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// document is a JSON object whose members keep their order and their bytes. Members that a
// codec does not know stay as another program has written them.
type document struct {
	members []member
	read    bool // it was read, so a field that it leaves out stays out while it is zero
}

type member struct {
	key   string
	value json.RawMessage
}

var (
	errNoJSON   = errors.New("the data is no JSON")
	errNoObject = errors.New("the data is no JSON object")
)

// parse returns the document in data, whose bytes it refers to. Of two members with one name
// the last counts, as in Jackson.
func parse(data []byte) (*document, error) {
	if !json.Valid(data) {
		return nil, errNoJSON
	}
	return object(data)
}

// object is parse of what is known to be JSON.
func object(data []byte) (*document, error) {
	d := &document{read: true, members: make([]member, 0, 10)}
	s := scanner(data)
	if s.skip(); s[0] != '{' {
		return nil, errNoObject
	}
	for s.past(); s[0] != '}'; {
		key := unquoted(s.value())
		s.past() // the colon
		d.members = append(d.members, member{key, json.RawMessage(s.value())})
		if s[0] == ',' {
			s.past()
		}
	}
	return d, nil
}

// scanner is the rest of a text that is known to be JSON.
type scanner []byte

// skip takes white space.
func (s *scanner) skip() { *s = bytes.TrimLeft(*s, " \t\r\n") }

// past takes one byte, and white space.
func (s *scanner) past() { *s = (*s)[1:]; s.skip() }

// value takes a value, and white space behind it.
func (s *scanner) value() []byte {
	depth, quoted, at := 0, false, 0
	for ; at < len(*s); at++ {
		switch c := (*s)[at]; {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 0:
			depth--
		case depth == 0 && strings.IndexByte(",:}] \t\r\n", c) >= 0:
			return s.take(at)
		}
	}
	return s.take(at)
}

func (s *scanner) take(n int) []byte {
	taken := (*s)[:n:n]
	*s = (*s)[n:]
	s.skip()
	return taken
}

// unquoted is the text of a JSON string, "" if it is none.
func unquoted(value []byte) string {
	if len(value) > 1 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return strings.ToValidUTF8(string(value[1:len(value)-1]), "\ufffd")
	}
	var s string
	_ = json.Unmarshal(value, &s) // it stays empty
	return s
}

// at is where the member is, -1 if there is none.
func (d *document) at(key string) int {
	for at, m := range slices.Backward(d.members) {
		if m.key == key {
			return at
		}
	}
	return -1
}

// get is the value of a member, nil if there is none or it is null.
func (d *document) get(key string) json.RawMessage {
	if at := d.at(key); at >= 0 && !isNull(d.members[at].value) {
		return d.members[at].value
	}
	return nil
}

func isNull(value []byte) bool { return string(value) == "null" }

// set gives a member a value. A new one is the last.
func (d *document) set(key string, value json.RawMessage) {
	if at := d.at(key); at >= 0 {
		d.members[at].value = value
		return
	}
	d.members = append(d.members, member{key, value})
}

func (d *document) remove(key string) {
	d.members = slices.DeleteFunc(d.members, func(m member) bool { return m.key == key })
}

// put is set, unless the member says the same already, in whatever form.
func (d *document) put(key string, value json.RawMessage, same func(old json.RawMessage) bool) {
	switch at := d.at(key); {
	case at >= 0 && same(d.get(key)):
	case at < 0 && d.read && same(nil):
	default:
		d.set(key, value)
	}
}

// null stands for what is not there.
var null = json.RawMessage("null") //nolint:gochecknoglobals // a constant

// putText puts a text, null if it is empty.
func (d *document) putText(key, text string) {
	value := null
	if text != "" {
		value = quoted(text)
	}
	d.put(key, value, func(old json.RawMessage) bool {
		was, err := textOf(old)
		return err == nil && was == text
	})
}

// putInt puts a number; zero stands for 0.
func (d *document) putInt(key string, n int64, zero string) {
	value := json.RawMessage(zero)
	if n != 0 {
		value = strconv.AppendInt(nil, n, 10)
	}
	d.put(key, value, func(old json.RawMessage) bool {
		was, err := intOf(old)
		return err == nil && was == n
	})
}

// putMap puts a map of texts into the members. Members that are no texts, numbers or truth
// values stay, and so do those called but.
func (d *document) putMap(all map[string]string, but string) {
	for key := range mapOf(d, but) {
		if _, stays := all[key]; !stays {
			d.remove(key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		d.put(key, quoted(all[key]), func(old json.RawMessage) bool {
			was, isScalar := scalar(old)
			return isScalar && was == all[key]
		})
	}
}

// bytes is the document as compact JSON.
func (d *document) bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for n, m := range d.members {
		if n > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(m.key))
		b.WriteByte(':')
		_ = json.Compact(&b, m.value) // it is JSON
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quoted is a text as a JSON string. It escapes only what must be, as Jackson does.
func quoted(text string) json.RawMessage { return marshalled(text) }

// marshalled is a value that can be marshalled as JSON, without HTML's escapes.
func marshalled(v any) json.RawMessage {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return null
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// textOf is a text; null stands for the empty one.
func textOf(value json.RawMessage) (string, error) {
	if value == nil || isNull(value) {
		return "", nil
	}
	if value[0] != '"' {
		return "", fmt.Errorf("%s is no text", short(value))
	}
	return unquoted(value), nil
}

// intOf is a whole number, also one in quotes, as Jackson reads it. Null stands for 0.
func intOf(value json.RawMessage) (int64, error) {
	if value == nil || isNull(value) {
		return 0, nil
	}
	text := string(value)
	if value[0] == '"' {
		text = unquoted(value)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no whole number", short(value))
	}
	return n, nil
}

// portOf is a port, 0 if there is none.
func portOf(value json.RawMessage) (int, error) {
	n, err := intOf(value)
	if err == nil && (n < 0 || n > 65535) {
		err = fmt.Errorf("%d is no port", n)
	}
	if err != nil {
		return 0, err
	}
	return int(n), nil
}

// timeOf is a time in milliseconds, zero if it is not known.
func timeOf(value json.RawMessage) (time.Time, error) {
	n, err := intOf(value)
	if err != nil || n == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(n).UTC(), nil
}

// millis is a time in milliseconds, 0 if it is not known.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// scalar is the text of a text, a number or a truth value.
func scalar(value json.RawMessage) (text string, is bool) {
	switch {
	case len(value) == 0 || isNull(value) || value[0] == '{' || value[0] == '[':
		return "", false
	case value[0] == '"':
		return unquoted(value), true
	default:
		return string(value), true
	}
}

// mapOf is the texts, numbers and truth values of a document, but for one member. It is nil if
// there are none.
func mapOf(d *document, but string) map[string]string {
	var all map[string]string
	for _, m := range d.members {
		if text, is := scalar(m.value); is && m.key != but {
			if all == nil {
				all = make(map[string]string, len(d.members))
			}
			all[m.key] = text
		}
	}
	return all
}

// inside is the object that a member has, an empty one if it has none.
func (d *document) inside(key string) (*document, error) {
	value := d.get(key)
	if value == nil {
		return &document{read: d.at(key) >= 0}, nil
	}
	in, err := object(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %s is no object", key, short(value))
	}
	return in, nil
}

// short is the beginning of a text, for messages.
func short(text []byte) string {
	const most = 40
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "..."
	}
	return string(text)
}

// wrong says which member is wrong.
func wrong(key string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}
