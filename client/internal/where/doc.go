// Package where knows the servers: which there are, in which order they are tried and at what pace,
// how one of them is dialed, and why it is not reached. A [Servers] outlives the sessions of
// its client. All of its methods may be called at the same time.
package where
