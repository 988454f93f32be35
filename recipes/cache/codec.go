package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
)

// Codec decodes the data of a node. It runs on the goroutine of the cache, so it must
// not block, and must not close the cache. It may keep data. An error makes the node
// undecodable; see [UndecodableError]. A panic does the same.
type Codec[V any] func(data []byte) (V, error)

// try calls the codec, and makes an error of its panic: one bad value must not end every
// program that follows it.
func (c Codec[V]) try(data []byte) (v V, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = *new(V), fmt.Errorf("the codec panics: %v\n%s", p, debug.Stack())
		}
	}()
	return c(data)
}

// Bytes is the codec of raw bytes. Readers share the bytes and must not change them.
func Bytes(data []byte) ([]byte, error) { return data, nil }

// Text is the codec of strings.
func Text(data []byte) (string, error) { return string(data), nil }

var errNull = errors.New("the document is null, which is no value")

// JSON returns the codec of JSON documents. Fields that V lacks are ignored. An empty
// node is undecodable, and so is one with more than one document. So is null, which would
// be a zero value without an error.
func JSON[V any]() Codec[V] {
	return func(data []byte) (v V, err error) {
		if string(bytes.TrimSpace(data)) == "null" {
			return v, errNull
		}
		if err := json.Unmarshal(data, &v); err != nil {
			return *new(V), err
		}
		return v, nil
	}
}
