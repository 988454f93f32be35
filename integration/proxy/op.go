package proxy

import "strconv"

// Op is a ZooKeeper request type.
type Op int32

// The request types. OpConnect means the handshake, which has no type on the
// wire.
const (
	OpConnect         Op = -10
	OpCloseSession    Op = -11
	OpCreate          Op = 1
	OpDelete          Op = 2
	OpExists          Op = 3
	OpGetData         Op = 4
	OpSetData         Op = 5
	OpGetACL          Op = 6
	OpSetACL          Op = 7
	OpGetChildren     Op = 8
	OpSync            Op = 9
	OpPing            Op = 11
	OpGetChildren2    Op = 12
	OpCheck           Op = 13
	OpMulti           Op = 14
	OpCreate2         Op = 15
	OpReconfig        Op = 16
	OpCheckWatches    Op = 17
	OpRemoveWatches   Op = 18
	OpCreateContainer Op = 19
	OpCreateTTL       Op = 21
	OpMultiRead       Op = 22
	OpAuth            Op = 100
	OpSetWatches      Op = 101
	OpGetEphemerals   Op = 103
	OpChildrenNumber  Op = 104
	OpSetWatches2     Op = 105
	OpAddWatch        Op = 106
	OpWhoAmI          Op = 107
)

// String names the type as ZooKeeper does.
func (o Op) String() string {
	switch o {
	case OpConnect:
		return "connect"
	case OpCloseSession:
		return "closeSession"
	case OpCreate:
		return "create"
	case OpDelete:
		return "delete"
	case OpExists:
		return "exists"
	case OpGetData:
		return "getData"
	case OpSetData:
		return "setData"
	case OpGetACL:
		return "getACL"
	case OpSetACL:
		return "setACL"
	case OpGetChildren:
		return "getChildren"
	case OpSync:
		return "sync"
	case OpPing:
		return "ping"
	case OpGetChildren2:
		return "getChildren2"
	case OpCheck:
		return "check"
	case OpMulti:
		return "multi"
	default:
		return o.rareName()
	}
}

func (o Op) rareName() string {
	switch o {
	case OpCreate2:
		return "create2"
	case OpReconfig:
		return "reconfig"
	case OpCheckWatches:
		return "checkWatches"
	case OpRemoveWatches:
		return "removeWatches"
	case OpCreateContainer:
		return "createContainer"
	case OpCreateTTL:
		return "createTTL"
	case OpMultiRead:
		return "multiRead"
	case OpAuth:
		return "auth"
	case OpSetWatches:
		return "setWatches"
	case OpGetEphemerals:
		return "getEphemerals"
	case OpChildrenNumber:
		return "getAllChildrenNumber"
	case OpSetWatches2:
		return "setWatches2"
	case OpAddWatch:
		return "addWatch"
	case OpWhoAmI:
		return "whoAmI"
	default:
		return "op" + strconv.Itoa(int(o))
	}
}

// Creates reports whether the type makes a node.
func (o Op) Creates() bool {
	return o == OpCreate || o == OpCreate2 || o == OpCreateContainer || o == OpCreateTTL
}

// hasPath reports whether the request's first field is a path.
func (o Op) hasPath() bool {
	switch o {
	case OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL, OpGetChildren, OpSync, OpGetChildren2, OpCheck,
		OpCheckWatches, OpRemoveWatches, OpGetEphemerals, OpChildrenNumber, OpAddWatch:
		return true
	default:
		return o.Creates()
	}
}

// watches reports whether the request ends with a flag that asks for a watch.
func (o Op) watches() bool {
	return o == OpExists || o == OpGetData || o == OpGetChildren || o == OpGetChildren2
}

// ordinary reports whether a caller waits for the answer: not the upkeep of the
// connection. Only these make round trips.
func (o Op) ordinary() bool {
	switch o {
	case OpConnect, OpPing, OpAuth, OpSetWatches, OpSetWatches2:
		return false
	default:
		return true
	}
}
