package wire

import "encoding/binary"

// Request types and reserved xids of ZooKeeper's protocol.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opSetACL          = 7
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opReconfig        = 16
	opCreateContainer = 19
	opCreateTTL       = 21
	opSetAuth         = 100
	opCloseSession    = -11

	xidNotification = -1
	xidPing         = -2
	xidAuth         = -4
	// xidClose marks the Link's own closeSession ("DOCT"). Servers echo any
	// xid, and go-zookeeper uses positive ones only.
	xidClose = -0x444f4354
	// xidCheck and the checkXids below it mark the Link's own checks.
	xidCheck  = -0x44500000
	checkXids = 1 << 16
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

// requestPath returns the path that follows the header of a whole request
// frame, and where it ends; nil if there is none that fits.
func requestPath(frame []byte) (path []byte, end int) {
	const at = lengthSize + requestHeader
	path = pathAt(frame, at)
	return path, at + 4 + len(path)
}

// pathAt returns the path whose length stands at frame[at:], nil if there is
// none that fits.
func pathAt(frame []byte, at int) []byte {
	at += 4
	if len(frame) < at {
		return nil
	}
	n := int(be32(frame[at-4:]))
	if n <= 0 || n > len(frame)-at {
		return nil
	}
	return frame[at : at+n]
}

func closeFrame() []byte {
	b := put32(make([]byte, lengthSize, lengthSize+requestHeader), xidClose)
	return sealFrame(put32(b, opCloseSession), 0)
}
