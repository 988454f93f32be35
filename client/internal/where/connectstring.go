package where

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/shown"
)

const defaultPort = "2181"

var errConnectString = errors.New("client: invalid connect string")

// Parse splits "h1:2181,h2/chroot" as ZooKeeper's clients do: a
// comma-separated list of hosts with optional ports, then an optional chroot
// for all of them. IPv6 addresses stand in brackets. Reasons in its errors name
// the part that is wrong by its position.
// valid judges the chroot.
func Parse(s string, valid func(path string) error) (servers []string, chroot string, err error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w %s: %s", errConnectString, shown.Address(s), fmt.Sprintf(format, args...))
	}
	if strings.TrimSpace(s) == "" {
		return nil, "", bad("it is empty; expected \"host:port,host:port/chroot\"")
	}
	if strings.Contains(s, "://") {
		return nil, "", bad("it has a scheme (what stands before ://), which ZooKeeper does not use; leave it out, and pass WithTLS for an encrypted connection")
	}
	hosts := s
	if i := strings.IndexByte(s, '/'); i >= 0 {
		hosts, chroot = s[:i], s[i:]
		if !strings.HasSuffix(chroot, "//") && chroot != "/" {
			chroot = strings.TrimSuffix(chroot, "/")
		}
		if strings.Trim(chroot, "/") == "" && chroot != "/" {
			return nil, "", bad("the chroot has no name between its slashes; leave them out, or write one like \"/app\"")
		}
		if err := valid(chroot); err != nil {
			if strings.Contains(s, "@") {
				err = zk.ErrInvalidPath // without the text
			}
			return nil, "", bad("chroot: %v", err)
		}
		if chroot == "/" {
			chroot = ""
		}
	}
	seen := map[string]bool{}
	position := 0
	for part := range strings.SplitSeq(hosts, ",") {
		position++
		part = strings.TrimSpace(part)
		if part == "" {
			return nil, "", bad("server %d is empty; servers stand between commas, before the chroot", position)
		}
		addr, err := HostPort(part)
		if err != nil {
			return nil, "", bad("server %d: %v", position, err)
		}
		if !seen[addr] {
			seen[addr] = true
			servers = append(servers, addr)
		}
	}
	return servers, chroot, nil
}

// NoChroot says what to do about a chroot that does not exist. A comma is allowed in
// a chroot. But a user that writes a comma there has most likely repeated the chroot
// behind every server.
func NoChroot(chroot string) string {
	remedy := "create it first, or use WithNamespace, which creates what is missing"
	if strings.Contains(chroot, ",") {
		remedy = "a chroot is written once, behind the last server: \"host:port,host:port/chroot\""
	}
	return shown.Address(chroot) + "; " + remedy
}

// HostPort is a server as "host:port", with ZooKeeper's own port if it has none.
func HostPort(s string) (string, error) {
	if strings.Contains(s, ";") {
		return "", errors.New("servers are separated by commas, not semicolons")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == '@' || unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return "", errors.New("a host has no blanks and no user name; credentials are given with WithAuth")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		// No port: a name, an IPv4 address, or a bracketed IPv6 address.
		host, port = s, defaultPort
		bracketed := len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']'
		if bracketed {
			host = s[1 : len(s)-1]
		}
		if strings.Contains(host, ":") && !bracketed {
			return "", errors.New("it has more than one colon: servers are separated by commas, and an IPv6 address stands in brackets, like [::1]:2181")
		}
	}
	switch {
	case host == "":
		return "", errors.New("the host is missing, expected host:port")
	case strings.ContainsAny(host, "[]"):
		return "", errors.New("brackets stand around an IPv6 address and nowhere else, like [::1]:2181")
	}
	if strings.ContainsAny(host, ",/") { // out of an ensemble's configuration: a connect string is split there
		return "", errors.New("a host has no comma and no slash")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("the port is not a number from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}
