package zktest

import "github.com/docent-go/docent/internal/zkserver"

// Op is a request type of the ZooKeeper protocol, as a request header carries it. In a
// [Match] the zero Op means any.
type Op int32

// Request types. OpConnect is the handshake, of new sessions and of sessions that come
// back; it has no request header on the wire. OpExpire has no frame at all: in the log
// it means a session that the server ended.
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

// String returns the name that ZooKeeper's own log gives the request type.
func (o Op) String() string { return zkserver.Op(o).String() }

// Code is an error code of the ZooKeeper protocol, as a reply header carries it.
// [Server.Fail] takes any value, even one that no server knows.
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
func (c Code) String() string { return zkserver.Code(c).String() }
