package zktest

import "github.com/docent-go/docent/internal/zoodefs"

// Op is a request type of the ZooKeeper protocol, as a request header carries it. In a
// [Match] the zero Op means any.
type Op int32

// Request types. OpConnect is the handshake, of new sessions and of sessions that come
// back; it has no request header on the wire. OpExpire has no frame at all: in the log
// it means a session that the server ended.
const (
	OpCreate               Op = Op(zoodefs.OpCreate)
	OpDelete               Op = Op(zoodefs.OpDelete)
	OpExists               Op = Op(zoodefs.OpExists)
	OpGetData              Op = Op(zoodefs.OpGetData)
	OpSetData              Op = Op(zoodefs.OpSetData)
	OpGetACL               Op = Op(zoodefs.OpGetACL)
	OpSetACL               Op = Op(zoodefs.OpSetACL)
	OpGetChildren          Op = Op(zoodefs.OpGetChildren)
	OpSync                 Op = Op(zoodefs.OpSync)
	OpPing                 Op = Op(zoodefs.OpPing)
	OpGetChildren2         Op = Op(zoodefs.OpGetChildren2)
	OpCheck                Op = Op(zoodefs.OpCheck)
	OpMulti                Op = Op(zoodefs.OpMulti)
	OpCreate2              Op = Op(zoodefs.OpCreate2)
	OpReconfig             Op = Op(zoodefs.OpReconfig)
	OpCheckWatches         Op = Op(zoodefs.OpCheckWatches)
	OpRemoveWatches        Op = Op(zoodefs.OpRemoveWatches)
	OpCreateContainer      Op = Op(zoodefs.OpCreateContainer)
	OpDeleteContainer      Op = Op(zoodefs.OpDeleteContainer)
	OpCreateTTL            Op = Op(zoodefs.OpCreateTTL)
	OpMultiRead            Op = Op(zoodefs.OpMultiRead)
	OpAuth                 Op = Op(zoodefs.OpAuth)
	OpSetWatches           Op = Op(zoodefs.OpSetWatches)
	OpSASL                 Op = Op(zoodefs.OpSASL)
	OpGetEphemerals        Op = Op(zoodefs.OpGetEphemerals)
	OpGetAllChildrenNumber Op = Op(zoodefs.OpGetAllChildrenNumber)
	OpSetWatches2          Op = Op(zoodefs.OpSetWatches2)
	OpAddWatch             Op = Op(zoodefs.OpAddWatch)
	OpWhoAmI               Op = Op(zoodefs.OpWhoAmI)
	OpConnect              Op = Op(zoodefs.OpConnect)
	OpCloseSession         Op = Op(zoodefs.OpCloseSession)
	OpExpire               Op = Op(zoodefs.OpExpire)
)

// String returns the name that ZooKeeper's own log gives the request type.
func (o Op) String() string { return zoodefs.Op(o).String() }

// Code is an error code of the ZooKeeper protocol, as a reply header carries it.
// [Server.Fail] takes any value, even one that no server knows.
type Code int32

// Error codes. The numbers are ZooKeeper's.
const (
	CodeOK                      Code = Code(zoodefs.CodeOK)
	CodeSystemError             Code = Code(zoodefs.CodeSystemError)
	CodeRuntimeInconsistency    Code = Code(zoodefs.CodeRuntimeInconsistency)
	CodeConnectionLoss          Code = Code(zoodefs.CodeConnectionLoss)
	CodeMarshallingError        Code = Code(zoodefs.CodeMarshallingError)
	CodeUnimplemented           Code = Code(zoodefs.CodeUnimplemented)
	CodeOperationTimeout        Code = Code(zoodefs.CodeOperationTimeout)
	CodeBadArguments            Code = Code(zoodefs.CodeBadArguments)
	CodeNewConfigNoQuorum       Code = Code(zoodefs.CodeNewConfigNoQuorum)
	CodeReconfigInProgress      Code = Code(zoodefs.CodeReconfigInProgress)
	CodeAPIError                Code = Code(zoodefs.CodeAPIError)
	CodeNoNode                  Code = Code(zoodefs.CodeNoNode)
	CodeNoAuth                  Code = Code(zoodefs.CodeNoAuth)
	CodeBadVersion              Code = Code(zoodefs.CodeBadVersion)
	CodeNoChildrenForEphemerals Code = Code(zoodefs.CodeNoChildrenForEphemerals)
	CodeNodeExists              Code = Code(zoodefs.CodeNodeExists)
	CodeNotEmpty                Code = Code(zoodefs.CodeNotEmpty)
	CodeSessionExpired          Code = Code(zoodefs.CodeSessionExpired)
	CodeInvalidCallback         Code = Code(zoodefs.CodeInvalidCallback)
	CodeInvalidACL              Code = Code(zoodefs.CodeInvalidACL)
	CodeAuthFailed              Code = Code(zoodefs.CodeAuthFailed)
	CodeSessionMoved            Code = Code(zoodefs.CodeSessionMoved)
	CodeNotReadOnly             Code = Code(zoodefs.CodeNotReadOnly)
	CodeEphemeralOnLocalSession Code = Code(zoodefs.CodeEphemeralOnLocalSession)
	CodeNoWatcher               Code = Code(zoodefs.CodeNoWatcher)
	CodeReconfigDisabled        Code = Code(zoodefs.CodeReconfigDisabled)
	CodeSessionClosedSASL       Code = Code(zoodefs.CodeSessionClosedSASL)
	CodeQuotaExceeded           Code = Code(zoodefs.CodeQuotaExceeded)
	CodeThrottledOp             Code = Code(zoodefs.CodeThrottledOp)
)

// String returns the code as a number, with its name if it has one.
func (c Code) String() string { return zoodefs.Code(c).String() }
