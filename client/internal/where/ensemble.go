package where

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/docent-go/docent/client/internal/shown"
)

// ParseEnsemble reads the dynamic configuration of an ensemble, which is a list of
// lines such as
//
//	server.1=zk1:2888:3888:participant;0.0.0.0:2181
//	version=100000000
//
// and returns the addresses for clients. If a member's client address is that of all
// interfaces, the member is reached at the host in front of its first port (CURATOR-384).
// All members must have a client address. The members of a zoo.cfg with clientPort have
// none, except for the server that is asked (CURATOR-526).
func ParseEnsemble(text string) (servers []string, version int64, err error) {
	members, version, err := ParseMembers(text)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range members {
		if m.Unreached != nil {
			return nil, 0, fmt.Errorf("server %s: %w", shown.Short(m.ID), m.Unreached)
		}
		for _, addr := range m.Clients {
			if !slices.Contains(servers, addr) {
				servers = append(servers, addr)
			}
		}
	}
	return servers, version, nil
}

// Member is one line of a configuration.
type Member struct {
	ID        string
	Line      string   // as reconfig takes it: "server.<id>=..."
	Clients   []string // addresses for clients
	Unreached error    // why there are none
}

// ParseMembers reads the configuration of an ensemble as ParseEnsemble does, and takes members
// without a client address too.
func ParseMembers(text string) (members []Member, version int64, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, "=")
		switch id, member := strings.CutPrefix(key, "server."); {
		case key == "version":
			if version, err = strconv.ParseInt(value, 16, 64); err != nil {
				return nil, 0, fmt.Errorf("version %q is no hexadecimal number", shown.Short(value))
			}
		case member:
			m := Member{ID: id, Line: line}
			m.Clients, m.Unreached = parseMember(value)
			members = append(members, m)
		}
	}
	if len(members) == 0 {
		return nil, 0, errors.New("it names no server")
	}
	return members, version, nil
}

// parseMember returns the addresses for clients of one member. It has several hosts
// if it has several networks (ZOOKEEPER-3188).
func parseMember(value string) (addrs []string, err error) {
	peer, client, found := strings.Cut(value, ";")
	client = strings.TrimSpace(client)
	switch {
	case !found || client == "":
		return nil, errors.New("it has no client address")
	case strings.Contains(client, ";"):
		return nil, fmt.Errorf("its client address %q has a form that is not known", shown.Short(client))
	}
	hosts := []string{""}
	host, port := lastColon(client)
	if host != "" && !unspecified(host) {
		hosts[0] = host
	} else {
		hosts = peerHosts(peer)
	}
	for _, host := range hosts {
		addr, err := HostPort(net.JoinHostPort(host, port))
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// peerHosts are the hosts of "host:port:port:role|host:port:port". An IPv6 address
// may lack its brackets there.
func peerHosts(peer string) (hosts []string) {
	for part := range strings.SplitSeq(peer, "|") {
		host, last := lastColon(strings.TrimSpace(part))
		if _, err := strconv.Atoi(last); err != nil { // the role
			host, _ = lastColon(host)
		}
		host, _ = lastColon(host)
		hosts = append(hosts, strings.Trim(host, "[]"))
	}
	return hosts
}

// lastColon splits at the last colon, and removes the brackets around what is before
// it.
func lastColon(s string) (before, after string) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", s
	}
	before = s[:i]
	if strings.HasPrefix(before, "[") && strings.HasSuffix(before, "]") {
		before = before[1 : len(before)-1]
	}
	return before, s[i+1:]
}

// unspecified reports whether host is the address of all interfaces.
func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
