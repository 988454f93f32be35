package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/shown"
	"github.com/docent-go/docent/internal/wire"
)

// Outcome says what is known about the effect of an operation, mostly of one that
// failed.
type Outcome int

// The outcomes of an operation.
const (
	// OutcomeUnknown: a request left and its answer did not come. The request may
	// have been applied, may never be, or may still be on its way.
	OutcomeUnknown Outcome = iota
	// OutcomeNeverSent: nothing reached a server.
	OutcomeNeverSent
	// OutcomeRefused: a server answered with an error; nothing was changed.
	OutcomeRefused
	// OutcomeUnchanged: the operation only reads. A request left, and there was no
	// useful answer.
	OutcomeUnchanged
	// OutcomeDone: it succeeded. No error has this outcome, see [OperationResult].
	OutcomeDone
)

// String returns the outcome in words.
func (o Outcome) String() string {
	switch o {
	case OutcomeNeverSent:
		return "never sent"
	case OutcomeRefused:
		return "refused"
	case OutcomeUnchanged:
		return "nothing changed"
	case OutcomeDone:
		return "done"
	default:
		return "outcome unknown"
	}
}

// OpError is the error of a failed operation.
type OpError struct {
	Op      string  // the operation: "create", "delete", ...
	Path    string  // the path as the caller gave it; "" for "session" and "identities"
	Outcome Outcome // what is known about its effect
	Err     error   // why

	lostTry    bool   // see lostTry
	identities string // that the client presents; for an operation that was refused for lack of rights
}

// lostTry is inside.Functions.LostTry.
func lostTry(err error) bool {
	var op *OpError
	return errors.As(err, &op) && op.lostTry
}

// Operations whose name is used more than once.
const (
	sessionOp     = "session"    // has no path
	identitiesOp  = "identities" // nor has it
	reconfigureOp = "reconfigure"
	createOrSetOp = "create or set"
	addAuthOp     = "add credentials of scheme" // of AddAuth and ReplaceAuth
)

// Error names the operation, the path, the reason and, where it matters, that
// the outcome is not known.
func (e *OpError) Error() string {
	s := "client: " + e.Op
	if e.Op != sessionOp && e.Op != identitiesOp {
		s += " " + shown.Short(e.Path)
	}
	s += ": " + strings.TrimPrefix(e.Err.Error(), "client: ") + e.remedy()
	if e.Outcome == OutcomeUnknown {
		s += " (outcome unknown)"
	}
	return s
}

// remedy says what to do about a server's answer that does not say it.
func (e *OpError) remedy() string {
	var inner *OpError
	switch {
	case errors.As(e.Err, &inner):
		return "" // the error says it already
	case errors.Is(e.Err, ErrTooLarge):
		return " (raise jute.maxbuffer on the servers and client.WithMaxRequest here, or store less)"
	case e.Op == reconfigureOp:
		return reconfigureRemedy(e.Path, e.Err)
	case errors.Is(e.Err, ErrNoAuth):
		return noRights(e.identities)
	case e.Op == addAuthOp && e.Outcome == OutcomeRefused:
		return " (the servers do not know the scheme, or do not take these credentials; the client goes on with those that it had)"
	case errors.As(e.Err, new(*wire.LoginError)):
		return "" // it says so itself
	case errors.Is(e.Err, ErrAuthFailed):
		return " (the servers refuse what client.WithAuth gave: they do not know its scheme, or do not take these credentials)"
	case e.Outcome == OutcomeRefused && errors.Is(e.Err, ErrInvalidACL):
		return " (an ACL says \"auth\" without client.WithAuth, or has a scheme or an id that the server does not know)"
	case errors.Is(e.Err, fate.ErrVanishing):
		return ""
	case (e.Op == "create" || e.Op == createOrSetOp) && errors.Is(e.Err, ErrNoNode):
		return " (the parent: make it first, or pass client.WithParents)"
	case errors.Is(e.Err, ErrNoChildrenForEphemerals):
		return " (the parent is such a node: take a path that is not below it)"
	default:
		return ""
	}
}

// reconfigureRemedy says what to do about a reconfiguration that was refused. The
// configuration is at path.
func reconfigureRemedy(path string, err error) string {
	switch {
	case errors.Is(err, zk.ErrReconfigDisabled):
		return " (set reconfigEnabled=true in zoo.cfg of every server)"
	case errors.Is(err, ErrNoAuth):
		return " (it takes the right to write " + path + ": be the superuser, whom the servers' superDigest names, or have the superuser change the ACL of that node)"
	case errors.Is(err, ErrBadVersion):
		return " (another client has changed the configuration: read it again with Client.Ensemble)"
	case errors.Is(err, zk.ErrBadArguments):
		return " (the servers cannot read a member, or two would have the same address, or no member with a vote would be left)"
	case errors.Is(err, fate.Unimplemented):
		return " (a single server has no ensemble to change)"
	default:
		return ""
	}
}

// How identities begin.
const (
	bySASL     = "SASL "
	digestUser = "digest user"
)

// noRights says what to do about a refusal for lack of rights. A server takes a wrong
// password of scheme digest for another identity and does not say so
// (DigestAuthenticationProvider hashes the password that it is given).
func noRights(identities string) string {
	if identities == "" {
		return " (the ACL of the node or of its parent does not allow it, and this client presents no credentials: pass them with client.WithAuth or client.WithSASL, or have the ACL changed)"
	}
	if strings.HasPrefix(identities, bySASL) && !strings.Contains(identities, digestUser) { // a server has said that they are right
		return fmt.Sprintf(" (the ACL of the node or of its parent does not allow it to %s: log in as another user, or have the ACL changed)", identities)
	}
	return fmt.Sprintf(" (the ACL of the node or of its parent does not allow it to %s; a wrong password looks the same, because a server takes it for another identity: check client.WithAuth, or have the ACL changed)", identities)
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// SafeToRetry reports whether the call that failed with err may be repeated as it is.
// Then nothing of it was applied, a repeat cannot do it twice, and the reason may
// pass. That is so
//
//   - if nothing reached a server ([OutcomeNeverSent]),
//   - if the call only reads and got no answer ([OutcomeUnchanged]),
//   - if a server refused it for a passing reason, such as [ErrThrottled].
//
// It is false where a repeat must fail as well: after Close, with credentials that
// are refused, for arguments that can never be sent, and for other refusals. It is
// false for errors of other packages. If the session of a call is over, repeat the
// call on the next [Session], which [Client.Session] returns.
//
// The client has already tried again by its retry policy. A write that was sent and
// not answered is [UnknownOutcome]: first find out what has become of it.
func SafeToRetry(err error) bool {
	var op *OpError
	if !errors.As(err, &op) {
		return false
	}
	switch op.Outcome {
	case OutcomeNeverSent, OutcomeUnchanged:
		return !hopeless(op.Err) && !errors.Is(op.Err, ErrAuthFailed)
	case OutcomeRefused:
		return fate.Passing(op.Err)
	default:
		return false
	}
}

// UnknownOutcome reports whether err is of an operation that may or may not
// have been applied.
func UnknownOutcome(err error) bool {
	var op *OpError
	return errors.As(err, &op) && op.Outcome == OutcomeUnknown
}
