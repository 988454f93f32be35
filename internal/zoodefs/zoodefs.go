// Package zoodefs is the table of the numbers and names of ZooKeeper's protocol, as
// ZooDefs and KeeperException.Code have them. The client's wire, the test server and
// the test proxy take them from here.
package zoodefs

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
)

// OpError is the type of the result of a part that failed, and in a log the type of a
// write that failed.
const OpError Op = -1

var opNames = map[Op]string{ //nolint:gochecknoglobals // a constant table
	OpCreate:               "create",
	OpDelete:               "delete",
	OpExists:               "exists",
	OpGetData:              "getData",
	OpSetData:              "setData",
	OpGetACL:               "getACL",
	OpSetACL:               "setACL",
	OpGetChildren:          "getChildren",
	OpSync:                 "sync",
	OpPing:                 "ping",
	OpGetChildren2:         "getChildren2",
	OpCheck:                "check",
	OpMulti:                "multi",
	OpCreate2:              "create2",
	OpReconfig:             "reconfig",
	OpCheckWatches:         "checkWatches",
	OpRemoveWatches:        "removeWatches",
	OpCreateContainer:      "createContainer",
	OpDeleteContainer:      "deleteContainer",
	OpCreateTTL:            "createTTL",
	OpMultiRead:            "multiRead",
	OpAuth:                 "auth",
	OpSetWatches:           "setWatches",
	OpSASL:                 "sasl",
	OpGetEphemerals:        "getEphemerals",
	OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpSetWatches2:          "setWatches2",
	OpAddWatch:             "addWatch",
	OpWhoAmI:               "whoAmI",
	OpConnect:              "connect",
	OpCloseSession:         "closeSession",
	OpExpire:               "expire",
}

// Known reports whether o is one of the constants that clients send, or a handshake or
// an expiry.
func (o Op) Known() bool { return opNames[o] != "" }

// String returns the name that ZooKeeper's own log gives the request type.
func (o Op) String() string {
	if n := opNames[o]; n != "" {
		return n
	}
	return "op" + strconv.Itoa(int(o))
}

// Creates reports whether the type makes a node.
func (o Op) Creates() bool {
	return o == OpCreate || o == OpCreate2 || o == OpCreateContainer || o == OpCreateTTL
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

var codeNames = map[Code]string{ //nolint:gochecknoglobals // a constant table
	CodeOK:                      "ok",
	CodeMarshallingError:        "marshalling error",
	CodeUnimplemented:           "unimplemented",
	CodeBadArguments:            "bad arguments",
	CodeNoNode:                  "no node",
	CodeNoAuth:                  "no auth",
	CodeBadVersion:              "bad version",
	CodeNoChildrenForEphemerals: "no children for ephemerals",
	CodeNodeExists:              "node exists",
	CodeNotEmpty:                "not empty",
	CodeSessionExpired:          "session expired",
	CodeInvalidACL:              "invalid acl",
	CodeAuthFailed:              "auth failed",
	CodeNoWatcher:               "no watcher",
	CodeThrottledOp:             "throttled",
}

// String returns the code as a number, with its name if it has one.
func (c Code) String() string {
	n := strconv.Itoa(int(c))
	if name := codeNames[c]; name != "" {
		return n + " (" + name + ")"
	}
	return n
}

// Create flags, as a create request carries them.
const (
	FlagPersistent    int32 = 0
	FlagEphemeral     int32 = 1
	FlagPersistentSeq int32 = 2
	FlagEphemeralSeq  int32 = 3
	FlagContainer     int32 = 4
	FlagTTL           int32 = 5
	FlagTTLSeq        int32 = 6
)

// Permission bits of an ACL entry.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// Special transaction ids of requests and replies.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
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

// StateSyncConnected is the state of a session in a watch event.
const StateSyncConnected int32 = 3
