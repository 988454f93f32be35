// Package plain does not use Docent.
package plain

import "github.com/go-zookeeper/zk"

func missing(err error) bool { return err == zk.ErrNoNode }
