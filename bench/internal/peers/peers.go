// Package peers connects the contenders of the peers that are written in Go.
package peers

import "errors"

// ErrNoSuch means that a peer has no such kind of lock.
var ErrNoSuch = errors.New("the peer has no such lock")
