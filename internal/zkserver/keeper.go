package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Quirk is a set of ways in which a server differs from Apache ZooKeeper. The
// constants of package zktest with the same names say what each does.
type Quirk uint16

// Quirks.
const (
	QuirkNoReattach Quirk = 1 << iota
	QuirkCloseOnStop
	QuirkCloseOnUnknown
	QuirkAnswerLeaderless
	QuirkEventOfWatch
	QuirkContainerOwner
	QuirkKeeperNodes
)

// AllQuirks is the set of all quirks.
const AllQuirks = QuirkKeeperNodes<<1 - 1

// leaderlessProtocol is the version in the answer to a handshake that Keeper
// turns away.
const leaderlessProtocol = 42

// seedKeeper makes the system nodes of Keeper: version 3 of its protocol, and the
// feature flag of multiRead.
func (t *dataTree) seedKeeper() {
	t.seed("/keeper", "api_version", "feature_flags")
	t.seed("/keeper/api_version").data = []byte("3")
	t.seed("/keeper/feature_flags").data = []byte{1 << 6}
}

func inKeeperFolder(path string) bool {
	return path == "/keeper" || strings.HasPrefix(path, "/keeper/")
}

// closeAttached ends the sessions that are connected here, as the Stop of a
// server with QuirkCloseOnStop does. The mutex is held.
func (s *Server) closeAttached() {
	if !s.cfg.has(QuirkCloseOnStop) || s.stopped || s.away() {
		return
	}
	for _, id := range sortedKeys(s.sessions) {
		if ses := s.sessions[id]; ses.conn != nil && !ses.closing {
			s.submit(&request{s: s, session: id, op: zoodefs.OpCloseSession, client: ses.client})
		}
	}
}
