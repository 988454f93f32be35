package zkserver

import (
	"strings"

	"github.com/docent-go/docent/internal/zkserver/jute"
)

// Values of a stored ephemeral owner that are not sessions.
const (
	containerOwner = int64(-1 << 63)
	ttlOwnerMask   = int64(-1) << 56
	maxTTL         = int64(1)<<40 - 1
)

// storedStat is the metadata that a node keeps. cversion counts creations of
// children only: it is the counter behind sequential names.
type storedStat struct {
	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	version, cversion, aversion int32
	owner                       int64
}

func newStoredStat(zxid, now, owner int64) storedStat {
	return storedStat{czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: now, mtime: now, owner: owner}
}

// ownerKind tells what a stored owner means.
type ownerKind int

const (
	ownerNone ownerKind = iota
	ownerSession
	ownerContainer
	ownerTTL
)

func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return ownerNone
	case owner == containerOwner:
		return ownerContainer
	case owner&ttlOwnerMask == ttlOwnerMask:
		return ownerTTL
	default:
		return ownerSession
	}
}

// dataNode is one node of the tree.
type dataNode struct {
	data     []byte
	acl      []jute.ACL
	stat     storedStat
	children map[string]uint64 // name and age, see dataTree.made
}

// stat translates the stored counters. The cversion that clients see counts
// deletions of children too.
func (t *dataTree) stat(n *dataNode) jute.Stat {
	kids := int32(len(n.children))
	owner := n.stat.owner
	switch kindOf(owner) {
	case ownerSession:
	case ownerContainer:
		if !t.showsContainers {
			owner = 0
		}
	case ownerNone, ownerTTL:
		owner = 0
	}
	return jute.Stat{
		Czxid: n.stat.czxid, Mzxid: n.stat.mzxid, Pzxid: n.stat.pzxid,
		Ctime: n.stat.ctime, Mtime: n.stat.mtime,
		Version: n.stat.version, Aversion: n.stat.aversion,
		Cversion:       n.stat.cversion*2 - kids,
		EphemeralOwner: owner,
		DataLength:     int32(len(n.data)),
		NumChildren:    kids,
	}
}

// validPath reports whether the server accepts path as the name of a node to write.
// It does not check the paths of reads, which find no such node.
func validPath(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	if path == "/" {
		return true
	}
	if strings.HasSuffix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, forbiddenRune)
}

// forbiddenRune reports characters that the server refuses. It refuses characters
// beyond the basic plane because Java sees their surrogates.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// parentForWrite returns the parent of a path, or false if the server does not look
// for it at all.
func parentForWrite(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:i], true
}

// systemPath reports whether path is a node that cannot be deleted.
func systemPath(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	default:
		return false
	}
}
