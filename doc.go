// Package docent is the root of a library of ZooKeeper recipes for Go that is
// compatible on the wire with Apache Curator. It holds no code: import
// [github.com/docent-go/docent/client] for a session and
// [github.com/docent-go/docent/recipes] for locks.
package docent
