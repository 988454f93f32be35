package proxy

import "github.com/docent-go/docent/internal/zoodefs"

// hasPath reports whether the request's first field is a path.
func hasPath(o zoodefs.Op) bool {
	switch o {
	case zoodefs.OpDelete, zoodefs.OpExists, zoodefs.OpGetData, zoodefs.OpSetData, zoodefs.OpGetACL, zoodefs.OpSetACL, zoodefs.OpGetChildren, zoodefs.OpSync, zoodefs.OpGetChildren2, zoodefs.OpCheck,
		zoodefs.OpCheckWatches, zoodefs.OpRemoveWatches, zoodefs.OpGetEphemerals, zoodefs.OpGetAllChildrenNumber, zoodefs.OpAddWatch:
		return true
	default:
		return o.Creates()
	}
}

// watches reports whether the request ends with a flag that asks for a watch.
func watches(o zoodefs.Op) bool {
	return o == zoodefs.OpExists || o == zoodefs.OpGetData || o == zoodefs.OpGetChildren || o == zoodefs.OpGetChildren2
}

// ordinary reports whether a caller waits for the answer: not the upkeep of the
// connection. Only these make round trips.
func ordinary(o zoodefs.Op) bool {
	switch o {
	case zoodefs.OpConnect, zoodefs.OpPing, zoodefs.OpAuth, zoodefs.OpSetWatches, zoodefs.OpSetWatches2:
		return false
	default:
		return true
	}
}
