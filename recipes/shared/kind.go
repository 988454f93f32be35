package shared

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// kind is how values of one type stand in a node.
type kind[T any] struct {
	name   string // in errors
	length int    // of the data, in bytes; 0 if any will do
	lax    bool   // no data means the zero value, as in Curator's atomic numbers
	decode func([]byte) T
	encode func(T) []byte
}

// The lengths of the data, in bytes.
const (
	lengthOfCount = 4
	lengthOfLong  = 8 // DistributedAtomicLong.valueToBytes
)

func countKind() kind[int32] {
	return kind[int32]{name: "count", length: lengthOfCount, decode: decodeInt32, encode: encodeInt32}
}

func integerKind() kind[int32] {
	return kind[int32]{name: "atomic integer", length: lengthOfCount, lax: true, decode: decodeInt32, encode: encodeInt32}
}

func longKind() kind[int64] {
	return kind[int64]{name: "atomic long", length: lengthOfLong, lax: true, decode: decodeInt64, encode: encodeInt64}
}

func bytesKind(name string) kind[[]byte] {
	return kind[[]byte]{name: name, decode: cloneBytes, encode: cloneBytes}
}

func cloneBytes(data []byte) []byte { return slices.Clone(data) }

func decodeInt32(data []byte) int32 {
	if len(data) == 0 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(data)) //nolint:gosec // the sign is one of the bits
}

func encodeInt32(v int32) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(v)) //nolint:gosec // as above
}

func decodeInt64(data []byte) int64 {
	if len(data) == 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(data)) //nolint:gosec // as above
}

func encodeInt64(v int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(v)) //nolint:gosec // as above
}

// wanted returns a CountDataError unless data of this length is of the kind.
func (k *kind[T]) wanted(path string, length int) error {
	if k.length == 0 || length == k.length || k.lax && length == 0 {
		return nil
	}
	return fmt.Errorf("shared: %s: %w", k.name, &CountDataError{Path: path, Length: length, Want: k.length})
}
