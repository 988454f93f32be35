// Package locktest is one suite of tests for every kind of lock in package
// recipes. It tests what all of them promise, whatever they look like on the
// server.
//
// It runs wherever there is a [World]: in a bubble of virtual time on an
// in-process server (recipes), and on a real ensemble behind proxies
// (integration/locks). Nothing in it waits for a time to pass where it could
// wait for an event; where nothing tells, it polls.
package locktest
