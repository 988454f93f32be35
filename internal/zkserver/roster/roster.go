// Package roster has the members of an ensemble as its configuration names them, and the
// changes that a reconfig asks for.
package roster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Ports of the members that New makes.
const (
	quorumPort   = 2888
	electionPort = 3888
	clientPort   = 2181
)

// server is one line of a configuration.
type server struct {
	host             string
	quorum, election int
	observer         bool
	client           string // "host:port", empty if the line has none
}

// String returns the line behind the "=".
func (s server) String() string {
	role := "participant"
	if s.observer {
		role = "observer"
	}
	text := fmt.Sprintf("%s:%d:%d:%s", s.host, s.quorum, s.election, role)
	if s.client != "" {
		text += ";" + s.client
	}
	return text
}

// Roster is a configuration. The zero Roster is that of a server on its own.
type Roster struct {
	servers map[int64]server
	Version int64 // the zxid of the reconfig that made it
}

// New returns the configuration of an ensemble of n members, the first of which is "zk1".
func New(n int, version int64) Roster {
	r := Roster{servers: map[int64]server{}, Version: version}
	for id := int64(1); id <= int64(n); id++ {
		host := fmt.Sprintf("zk%d", id)
		r.servers[id] = server{
			host: host, quorum: quorumPort, election: electionPort, client: fmt.Sprintf("%s:%d", host, clientPort),
		}
	}
	return r
}

// Alone reports whether the roster is that of a server on its own.
func (r Roster) Alone() bool { return r.servers == nil }

// String returns the text of the configuration node.
func (r Roster) String() string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(r.servers)) {
		fmt.Fprintf(&b, "server.%d=%v\n", id, r.servers[id])
	}
	return b.String() + "version=" + strconv.FormatInt(r.Version, 16)
}

// Voters returns the numbers of the members that vote.
func (r Roster) Voters() []int64 {
	var ids []int64
	for id, s := range r.servers {
		if !s.observer {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Change is what a reconfig asks for. A nil text is a null one.
type Change struct {
	Joining, Leaving, Members *string
	From                      int64 // the version to start from, or -1
}

// Apply returns the roster after a change, whose version the caller sets.
func (r Roster) Apply(c Change) (Roster, zoodefs.Code) {
	if c.From != -1 && c.From != r.Version {
		return r, zoodefs.CodeBadVersion
	}
	next := Roster{servers: map[int64]server{}}
	var code zoodefs.Code
	if c.Members != nil {
		code = next.replace(*c.Members)
	} else {
		maps.Copy(next.servers, r.servers)
		code = next.increment(c)
	}
	if code == zoodefs.CodeOK && len(next.Voters()) < 2 {
		code = zoodefs.CodeBadArguments // as long as standaloneEnabled is set, which it is by default
	}
	return next, code
}

// replace reads a whole configuration.
func (r Roster) replace(text string) zoodefs.Code {
	if strings.TrimSpace(text) == "" {
		return zoodefs.CodeMarshallingError // the real server stumbles over it
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, ",", "\n"), "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		number, named := strings.CutPrefix(strings.TrimSpace(key), "server.")
		switch {
		case key == "", key == "version":
			continue
		case !named:
			return zoodefs.CodeBadArguments
		}
		if code := r.put(number, strings.TrimSpace(value), false); code != zoodefs.CodeOK {
			return code
		}
	}
	return zoodefs.CodeOK
}

// increment lets members leave and join.
func (r Roster) increment(c Change) zoodefs.Code {
	for _, number := range list(c.Leaving) {
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return zoodefs.CodeMarshallingError // an exception that the real server does not expect
		}
		delete(r.servers, id)
	}
	for _, line := range list(c.Joining) {
		parts := strings.Split(strings.TrimRight(line, "="), "=")
		if len(parts) != 2 {
			return zoodefs.CodeBadArguments
		}
		number := parts[0][strings.LastIndexByte(parts[0], '.')+1:]
		if code := r.put(number, parts[1], true); code != zoodefs.CodeOK {
			return code
		}
	}
	return zoodefs.CodeOK
}

// list splits a text at its commas.
func list(text *string) []string {
	if text == nil {
		return nil
	}
	var out []string
	for part := range strings.SplitSeq(*text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// put adds a member, or replaces it.
func (r Roster) put(number, text string, withClient bool) zoodefs.Code {
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return zoodefs.CodeMarshallingError
	}
	s, ok := parse(text)
	if !ok || withClient && s.client == "" {
		return zoodefs.CodeBadArguments
	}
	r.servers[id] = s
	return zoodefs.CodeOK
}

// parse reads "host:port:port[:role][;[host:]port]".
func parse(text string) (server, bool) {
	peers, client, hasClient := strings.Cut(text, ";")
	parts := strings.Split(peers, ":")
	if len(parts) < 3 || len(parts) > 4 || strings.Contains(client, ";") {
		return server{}, false
	}
	s := server{host: parts[0]}
	var ok [3]bool
	s.quorum, ok[0] = port(parts[1])
	s.election, ok[1] = port(parts[2])
	ok[2] = s.quorum != s.election
	if len(parts) == 4 {
		role := strings.ToLower(strings.TrimSpace(parts[3]))
		s.observer = role == "observer"
		ok[2] = ok[2] && (s.observer || role == "participant")
	}
	if !hasClient {
		return s, ok == [3]bool{true, true, true}
	}
	host, number, found := strings.Cut(client, ":")
	if !found {
		host, number = "0.0.0.0", client
	}
	n, valid := port(number)
	s.client = fmt.Sprintf("%s:%d", host, n)
	return s, valid && ok == [3]bool{true, true, true}
}

func port(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil
}
