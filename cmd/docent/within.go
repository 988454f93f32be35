package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// outerSession is the variable in which docent run tells its command the session that
// holds the lock.
const outerSession = "DOCENT_SESSION"

// within stands in the data of a node between the name of the client and a session. The
// process of the node runs within the command of that session's docent.
const within = " within="

// longestName is the most that client.WithName takes, in bytes.
const longestName = 128

// nested is the name that a docent gives its nodes. If the docent is within the command
// of the session around, the name says so, for docent deadlocks. A name that has no room
// for that stays as it is.
func nested(name, around string) string {
	outer, err := strconv.ParseUint(around, 0, 64)
	if err != nil || outer == 0 {
		return name // no docent has started this one
	}
	if long := name + within + unsigned(outer); len(long) <= longestName {
		return long
	}
	return name
}

// unnested takes the name of a client apart into what nested was given, and the session
// that it has added, if any.
func unnested(client string) (name, outer string) {
	i := strings.LastIndex(client, within)
	if i < 0 {
		return client, ""
	}
	session, err := strconv.ParseUint(client[i+len(within):], 0, 64)
	if err != nil {
		return client, ""
	}
	return client[:i], unsigned(session)
}

// hex is a session as the servers' logs write it: without a sign. A server whose number is
// 128 or more makes sessions that are negative.
func hex(session int64) string { return unsigned(uint64(session)) } //nolint:gosec // bits, not a quantity

// sessionOf is the session with which a node is deleted, "" if it stays. ClickHouse Keeper shows an
// owner of containers, which is none.
func sessionOf(owner int64) string {
	if owner == 0 || owner == math.MinInt64 {
		return ""
	}
	return hex(owner)
}

func unsigned(session uint64) string { return fmt.Sprintf("%#x", session) }
