//go:build race

package zkserver_test

// go-zookeeper renews its watches after a reconnection while its receiver
// writes what the renewal reads (conn.go, sendSetWatches). Under the race
// detector its clients leave none.
const leaveWatches = false
