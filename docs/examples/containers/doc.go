// Package containers shows one suite of tests that runs on a server in the test's own
// process and on real servers in containers.
package containers
