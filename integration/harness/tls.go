package harness

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

const (
	securePort = 2281

	keyFile   = "/etc/zookeeper/tls/server.pem"
	trustFile = "/etc/zookeeper/tls/ca.pem"
)

// Keys is the key material of one server, as PEM.
type Keys struct {
	Server  []byte // private key in PKCS 8, and its certificate
	Trusted []byte // certificates of the authorities of clients
}

// WithTLS opens a second client port on every server, which speaks TLS and wants
// a certificate of every client; see [Node.SecureAddr]. keys is called with the
// id of each server. A later [WithProperty] overrides what this sets.
func WithTLS(keys func(id int) Keys) Option {
	return func(c *config) {
		c.keys = keys
		maps.Copy(c.properties, map[string]string{
			"secureClientPort":        strconv.Itoa(securePort),
			"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
			"ssl.keyStore.location":   keyFile,
			"ssl.trustStore.location": trustFile,
			"ssl.clientAuth":          "need",
		})
	}
}

// SecureAddr is where clients reach the server by TLS; it is the same for the
// node's whole life. It is empty without [WithTLS].
func (n *Node) SecureAddr() string {
	if n.secure == 0 {
		return ""
	}
	return "127.0.0.1:" + strconv.Itoa(n.secure)
}

// SecureAddrs returns the addresses for TLS of all nodes in the order of their ids.
func (e *Ensemble) SecureAddrs() []string {
	addrs := make([]string, 0, len(e.nodes))
	for _, n := range e.nodes {
		addrs = append(addrs, n.SecureAddr())
	}
	return addrs
}

// SetKeys replaces the files that [WithTLS] made. A server reads them when it starts.
func (n *Node) SetKeys(ctx context.Context, keys Keys) error {
	n.control.Lock()
	defer n.control.Unlock()
	for path, content := range map[string][]byte{keyFile: keys.Server, trustFile: keys.Trusted} {
		if err := n.container.CopyToContainer(ctx, content, path, 0o644); err != nil {
			return fmt.Errorf("set keys of node %d: %w", n.id, err)
		}
	}
	return nil
}

// keyFiles are the files of the node's keys.
func (c *config) keyFiles(id int) []testcontainers.ContainerFile {
	if c.keys == nil {
		return nil
	}
	keys := c.keys(id)
	return []testcontainers.ContainerFile{
		{Reader: bytes.NewReader(keys.Server), ContainerFilePath: keyFile, FileMode: 0o644},
		{Reader: bytes.NewReader(keys.Trusted), ContainerFilePath: trustFile, FileMode: 0o644},
	}
}

// ports are the ports for clients inside the container and those of 127.0.0.1.
func (n *Node) ports() map[network.Port]int {
	tcp := func(port int) network.Port { return network.MustParsePort(strconv.Itoa(port) + "/tcp") }
	ports := map[network.Port]int{tcp(clientPort): n.port}
	if n.secure != 0 {
		ports[tcp(securePort)] = n.secure
	}
	return ports
}
