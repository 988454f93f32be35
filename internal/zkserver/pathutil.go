package zkserver

import "strings"

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
