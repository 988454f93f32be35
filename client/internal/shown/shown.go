// Package shown makes what a user or a server has written fit for one line of an error or a log.
package shown

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Short keeps a call with an absurd path from filling a log or forging its lines.
func Short(path string) string {
	const most = 256
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		path = strconv.Quote(path)
	}
	if len(path) <= most {
		return path
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(path[:most], ""), len(path))
}

// Address is the part of a connect string that an error may quote. An @ stands behind a
// user name and a password, so nothing before it is shown.
func Address(text string) string {
	if strings.Contains(text, "@") {
		return "(not shown, because an @ may follow a password)"
	}
	return strconv.Quote(text)
}
