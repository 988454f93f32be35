package wire

import "encoding/binary"

// Further request types and reserved xids of ZooKeeper's protocol.
const (
	opCreate2      Op = 15
	opReconfig     Op = 16
	opSetAuth      Op = 100
	opCloseSession Op = -11

	xidNotification = -1
	xidPing         = -2
	xidAuth         = -4
	// xidOwn and the ownXids below it are those of exchanges.
	xidOwn  = -0x10000000
	ownXids = 1 << 28
)

// Reply codes the Link acts on.
const (
	codeOK                   = 0
	codeRuntimeInconsistency = -2
	codeSessionExpired       = -112
	codeAuthFailed           = -115
	codeSessionMoved         = -118
)

const (
	lengthSize = 4 // every frame starts with its length

	requestHeader = 8  // xid, type
	replyHeader   = 16 // xid, zxid, code
	multiHeader   = 9  // type, done, error: before each part of a multi and of its results

	partError = -1 // type of the result of a part that failed

	// version 4, last zxid 8, timeout 4, session id 8, password length 4
	minConnectRequest = 28
	connectZxidOffset = lengthSize + 4
	connectIDOffset   = lengthSize + 16

	// version 4, timeout 4, session id 8, password length 4
	minConnectResponse = 20
	maxConnectResponse = 4 << 10

	defaultMaxRequest = 0xfffff // ZooKeeper's default jute.maxbuffer
	defaultMaxReply   = 4 << 20
)

func be32(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }

func be64(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func put32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func put64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func putBytes[T string | []byte](b []byte, v T) []byte {
	return append(put32(b, int32(len(v))), v...)
}

// sealFrame writes the length of the frame that starts at b[start] and ends
// with b.
func sealFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-lengthSize))
	return b
}

// ownXid reports whether xid is one of an exchange.
func ownXid(xid int32) bool { return xid < xidOwn && xid >= xidOwn-ownXids }
