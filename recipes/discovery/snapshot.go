package discovery

import "time"

// Snapshot is the instances of a service after one transaction. It never changes, and any number
// of goroutines may read it.
type Snapshot struct {
	Service string
	// Instances are those that may be called, in the order of their nodes' names. The slice and
	// the instances are shared: change nothing.
	Instances []*ServiceInstance
	// Disabled are those that stand and want no calls, in the same order.
	Disabled []*ServiceInstance
	// Skipped are the nodes that are no usable instance, in the same order.
	Skipped []Skipped
	// Zxid is the transaction after which the service looked like this. It is 0 until the
	// directory was read for the first time.
	Zxid int64

	// Stale: the directory cannot hear of changes now, as while there is no connection. The
	// instances are those that were read last.
	Stale bool
	// Since is when the directory has become Stale, or has ceased to be.
	Since time.Time
	// Err is why the directory is Stale.
	Err error
}

// Skipped is a node that is no usable instance.
type Skipped struct {
	Node string // its name, without a path
	Err  error  // what is wrong with it
}
