package wire

import (
	"encoding/binary"

	"github.com/docent-go/docent/internal/zoodefs"
)

// Reply codes the Link acts on.
const (
	codeOK                   = int32(zoodefs.CodeOK)
	codeRuntimeInconsistency = int32(zoodefs.CodeRuntimeInconsistency)
	codeSessionExpired       = int32(zoodefs.CodeSessionExpired)
	codeAuthFailed           = int32(zoodefs.CodeAuthFailed)
	codeSessionMoved         = int32(zoodefs.CodeSessionMoved)
	codeNotReadOnly          = int32(zoodefs.CodeNotReadOnly)
)

const (
	// xidOwn and the ownXids below it are those of exchanges.
	xidOwn  = -0x10000000
	ownXids = 1 << 28
)

const (
	lengthSize = 4 // every frame starts with its length

	requestHeader = 8  // xid, type
	replyHeader   = 16 // xid, zxid, code
	multiHeader   = 9  // type, done, error: before each part of a multi and of its results

	// version 4, last zxid 8, timeout 4, session id 8, password length 4
	minConnectRequest = 28
	connectZxidOffset = lengthSize + 4
	connectIDOffset   = lengthSize + 16

	connectPasswordOffset = lengthSize + 24

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
