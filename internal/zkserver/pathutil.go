package zkserver

import "strings"

// validPath reports whether the server takes path as the name of a node to
// write. Reads are not checked: they find no such node.
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

// forbiddenRune reports characters the server refuses. Characters beyond the
// basic plane are refused because Java sees their surrogates.
func forbiddenRune(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// parentForWrite returns the parent of a path, or false where the server does
// not even look for it.
func parentForWrite(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 || strings.IndexByte(path, 0) >= 0 {
		return "", false
	}
	return path[:i], true
}

// systemPath reports nodes that cannot be deleted.
func systemPath(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config":
		return true
	default:
		return false
	}
}
