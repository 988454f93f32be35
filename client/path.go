package client

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath returns nil if a server would accept path for a create. Otherwise it
// says what is wrong, and the error matches [ErrInvalidPath]. The rules are the same
// as in ZooKeeper's PathUtils. That counts UTF-16 units, so characters outside the
// Basic Multilingual Plane are refused as well; go-zookeeper's own check accepts
// them.
func ValidatePath(path string) error {
	if path == "" {
		return fmt.Errorf("%w: it is empty; a path is absolute, like \"/locks/orders\"", ErrInvalidPath)
	}
	if path[0] != '/' {
		return fmt.Errorf("%w %q: it is relative; a path starts with \"/\", like %q", ErrInvalidPath, path, "/"+strings.Trim(path, "/"))
	}
	if path == "/" {
		return nil
	}
	if strings.HasSuffix(path, "/") {
		return fmt.Errorf("%w %q: it ends with \"/\"; write %q", ErrInvalidPath, path, "/"+strings.Trim(path, "/"))
	}
	if !utf8.ValidString(path) {
		return fmt.Errorf("%w %q: it is not valid UTF-8", ErrInvalidPath, path)
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		switch part {
		case "":
			return fmt.Errorf("%w %q: it has an empty part (\"//\")", ErrInvalidPath, path)
		case ".", "..":
			return fmt.Errorf("%w %q: relative parts (%q) are not allowed", ErrInvalidPath, path, part)
		}
	}
	for _, r := range path {
		if forbidden(r) {
			return fmt.Errorf("%w %q: the character %U is not allowed by ZooKeeper; encode it, for example with url.PathEscape",
				ErrInvalidPath, path, r)
		}
	}
	return nil
}

func forbidden(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f:
		return true // control characters, NUL among them
	case r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return true // surrogates, private use, specials; above U+FFFF the server sees surrogates
	default:
		return false
	}
}

// join appends a child's name to a directory's path.
func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// split cuts a path into the parent's path and the last part.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

func validNamespace(name string) error {
	if err := ValidatePath("/" + name); err != nil || name == "" {
		return fmt.Errorf("client: namespace %q: it is one or more path parts without a leading \"/\"", name)
	}
	return nil
}
