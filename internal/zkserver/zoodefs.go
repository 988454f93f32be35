package zkserver

import "strconv"

// Op is a request type of the ZooKeeper protocol, as a request header carries it.
type Op int32

// Request types. OpConnect is the handshake, which has no request header on the wire.
// OpExpire has no frame at all: in the log it means a session that the server
// ended.
const (
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpConnect              Op = -10
	OpCloseSession         Op = -11
	OpExpire               Op = -1000

	opError  Op = -1
	opPreset Op = -2 // presets a counter of an ensemble
)

// String returns the name that ZooKeeper's own log gives the request type.
func (o Op) String() string {
	if n := opName(o); n != "" {
		return n
	}
	return "op" + strconv.Itoa(int(o))
}

func opName(o Op) string {
	switch o {
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
	case OpDeleteContainer:
		return "deleteContainer"
	case OpCreateTTL:
		return "createTTL"
	default:
		return rareOpName(o)
	}
}

func rareOpName(o Op) string {
	switch o {
	case OpMultiRead:
		return "multiRead"
	case OpAuth:
		return "auth"
	case OpSetWatches:
		return "setWatches"
	case OpSASL:
		return "sasl"
	case OpGetEphemerals:
		return "getEphemerals"
	case OpGetAllChildrenNumber:
		return "getAllChildrenNumber"
	case OpSetWatches2:
		return "setWatches2"
	case OpAddWatch:
		return "addWatch"
	case OpWhoAmI:
		return "whoAmI"
	case OpConnect:
		return "connect"
	case OpCloseSession:
		return "closeSession"
	case OpExpire:
		return "expire"
	default:
		return ""
	}
}

// Code is an error code of the ZooKeeper protocol, as a reply header carries it.
type Code int32

// Error codes. The numbers are ZooKeeper's.
const (
	CodeOK                      Code = 0
	CodeSystemError             Code = -1
	CodeRuntimeInconsistency    Code = -2
	CodeConnectionLoss          Code = -4
	CodeMarshallingError        Code = -5
	CodeUnimplemented           Code = -6
	CodeOperationTimeout        Code = -7
	CodeBadArguments            Code = -8
	CodeNewConfigNoQuorum       Code = -13
	CodeReconfigInProgress      Code = -14
	CodeAPIError                Code = -100
	CodeNoNode                  Code = -101
	CodeNoAuth                  Code = -102
	CodeBadVersion              Code = -103
	CodeNoChildrenForEphemerals Code = -108
	CodeNodeExists              Code = -110
	CodeNotEmpty                Code = -111
	CodeSessionExpired          Code = -112
	CodeInvalidCallback         Code = -113
	CodeInvalidACL              Code = -114
	CodeAuthFailed              Code = -115
	CodeSessionMoved            Code = -118
	CodeNotReadOnly             Code = -119
	CodeEphemeralOnLocalSession Code = -120
	CodeNoWatcher               Code = -121
	CodeReconfigDisabled        Code = -123
	CodeSessionClosedSASL       Code = -124
	CodeQuotaExceeded           Code = -125
	CodeThrottledOp             Code = -127
)

// String returns the code as a number, with its name if it has one.
func (c Code) String() string {
	n := strconv.Itoa(int(c))
	if name := codeName(c); name != "" {
		return n + " (" + name + ")"
	}
	return n
}

func codeName(c Code) string {
	switch c {
	case CodeOK:
		return "ok"
	case CodeMarshallingError:
		return "marshalling error"
	case CodeUnimplemented:
		return "unimplemented"
	case CodeBadArguments:
		return "bad arguments"
	case CodeNoNode:
		return "no node"
	case CodeNoAuth:
		return "no auth"
	case CodeBadVersion:
		return "bad version"
	case CodeNoChildrenForEphemerals:
		return "no children for ephemerals"
	case CodeNodeExists:
		return "node exists"
	case CodeNotEmpty:
		return "not empty"
	case CodeSessionExpired:
		return "session expired"
	case CodeInvalidACL:
		return "invalid acl"
	case CodeAuthFailed:
		return "auth failed"
	case CodeNoWatcher:
		return "no watcher"
	case CodeThrottledOp:
		return "throttled"
	default:
		return ""
	}
}

// Create flags, as a create request carries them.
const (
	flagPersistent    int32 = 0
	flagEphemeral     int32 = 1
	flagPersistentSeq int32 = 2
	flagEphemeralSeq  int32 = 3
	flagContainer     int32 = 4
	flagTTL           int32 = 5
	flagTTLSeq        int32 = 6
)

// Permission bits of an ACL entry.
const (
	permRead   int32 = 1
	permWrite  int32 = 2
	permCreate int32 = 4
	permDelete int32 = 8
	permAdmin  int32 = 16
	permAll    int32 = 31
)

// Special transaction ids of requests and replies.
const (
	xidNotification int32 = -1
	xidPing         int32 = -2
)

// EventType is the kind of change a watch event reports.
type EventType int32

// Event types. The numbers are ZooKeeper's.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4
)

const stateSyncConnected int32 = 3
