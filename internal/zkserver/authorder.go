package zkserver

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// addAuth adds an identity at the place where a real server has it. That server
// keeps the identities of a connection in a hash table (ServerCnxn.authInfo). Its
// order shows in the ACL that a node gets for the scheme "auth", and in the answer
// to whoAmI.
func (c *conn) addAuth(id authID) {
	if slices.Contains(c.auth, id) {
		return
	}
	ids := append(slices.Clone(c.auth), id) // requests in flight hold the old slice
	bins := uint32(16)
	for len(ids) >= int(bins)*3/4 { // it doubles when it is three quarters full
		bins *= 2
	}
	// Identities in one bin stay in the order in which they came.
	slices.SortStableFunc(ids, func(a, b authID) int { return cmp.Compare(a.bin(bins), b.bin(bins)) })
	c.auth = ids
}

// bin is the place of the identity in a java.util.concurrent.ConcurrentHashMap with
// the given number of bins.
func (id authID) bin(bins uint32) uint32 {
	h := uint32(17) // as org.apache.zookeeper.data.Id
	h = 37*h + javaHash(id.scheme)
	h = 37*h + javaHash(id.id)
	return (h ^ h>>16) & (bins - 1)
}

// javaHash is String.hashCode.
func javaHash(s string) uint32 {
	var h uint32
	for _, unit := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(unit)
	}
	return h
}
