package recipes

import (
	"slices"

	"github.com/docent-go/docent/retry"
)

// ElectionOption configures a [LeaderLatch] or a [LeaderSelector].
type ElectionOption interface{ applyElection(*electionSettings) }

// electionSettings are what the options say.
type electionSettings struct {
	*Election

	nodes settings
}

// electionFunc is an ElectionOption.
type electionFunc func(*electionSettings)

func (f electionFunc) applyElection(s *electionSettings) { f(s) }

func (f nodeFunc) applyElection(s *electionSettings) { f(&s.nodes) }

// WithID names the participant (Curator: the id of LeaderLatch, LeaderSelector.setId).
// The id is the data of its node, as text, and nothing else is. Ids need not be unique.
// If clients shall find the leader, its address belongs here: they read it as the ID of
// [Election.Leader] or of [Election.Observe]. The id does not change while the node stands. For
// more than an address the leader writes a node of its own, in a [Hold.Guard].
// Without the option the id is the client's default data. That is the address of this
// host, and its process and name if the client has one by client.WithName.
func WithID(id string) ElectionOption {
	return electionFunc(func(s *electionSettings) { s.nodes.data, s.nodes.named = []byte(id), true })
}

// WithPreferred names the participants that shall lead rather than this one, the most
// wanted first. When this participant's turn comes while a preferred one stands in line,
// this participant goes behind the others instead. It asks once for each term, and reads
// the node of every participant for that. If its own id is among the ids, only the ids
// before its own are preferred to it.
//
// Give all participants the same ids. While these differ, as in a rolling update, two
// participants may each prefer the other. A preferred participant may also die before it
// leads: then there is no leader until its session ends. So a campaign does not give way to
// the same id again within a minute, or within two session timeouts if these are longer.
// Sessions that last longer than that may leave the election without a leader again and
// again. A participant of Curator never gives way. A leader is
// not asked to stop: use [Term.HandOver] for that. If the preferred participant goes
// before it leads, the next one in line leads.
func WithPreferred(ids ...string) ElectionOption {
	return electionFunc(func(s *electionSettings) { s.preferred = slices.Clone(ids) })
}

// WithCampaignRetry sets the pauses of [Election.Run] between campaigns that fail.
// The default is retry.Default. If the policy gives up, Run ends with the last error.
func WithCampaignRetry(p retry.Policy) ElectionOption {
	return electionFunc(func(s *electionSettings) { s.retry = p })
}
