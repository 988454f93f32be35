// Package sasl is DIGEST-MD5 (RFC 2831), as ZooKeeper's servers do it: one login, decided without
// I/O. A [Digest] is for one goroutine.
package sasl
