package cache

import (
	"bytes"
	"encoding/json"
)

// Codec decodes the data of a node. It runs on the goroutine of the cache, so it must
// not block. It may keep data. An error makes the node undecodable; see
// [UndecodableError].
type Codec[V any] func(data []byte) (V, error)

// Bytes is the codec of raw bytes. Readers share the bytes and must not change them.
func Bytes(data []byte) ([]byte, error) { return data, nil }

// Text is the codec of strings.
func Text(data []byte) (string, error) { return string(data), nil }

// JSON returns the codec of JSON documents. Fields that V lacks are ignored. An empty
// node is undecodable.
func JSON[V any]() Codec[V] {
	return func(data []byte) (v V, err error) {
		d := json.NewDecoder(bytes.NewReader(data))
		if err := d.Decode(&v); err != nil {
			return *new(V), err
		}
		return v, nil
	}
}
