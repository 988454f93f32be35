package discovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"
)

// ServiceInstance is one instance of a service: Curator's class of that name, and what the other
// registries know of an instance. Each [Codec] says which fields it carries.
//
// An instance of a [Snapshot] is shared by all its readers: change nothing in it, nor in what it
// refers to. To change one, take [ServiceInstance.Clone].
type ServiceInstance struct {
	Service string // the name of the service; of one that is read, as its node has it, or else that of its folder
	// ID names the instance within its service. It is the name of the node, as far as the codec
	// lets the caller choose that. If it is empty, the codec makes one: a new UUID, or
	// "<address>:<port>".
	ID string
	// Node is the name of the node, without a path. It is set in instances that are read, and is
	// different in each instance of a service. A writer leaves it empty.
	Node string

	Address string // a host name or an IP address, without a port
	Port    int    // 1 to 65535; 0 if there is none
	TLSPort int    // where the instance speaks TLS; 0 if there is none. Curator's sslPort

	// Endpoints are URLs such as "grpc://10.0.0.7:9000?isSecure=false", or named addresses
	// such as "http-admin=10.0.0.7:9001". Few codecs have them.
	Endpoints []string

	Metadata map[string]string
	// Weight is how many calls the instance wants, relative to others; 0 if nothing is said. A
	// negative one is refused by a writer, and is 0 in instances that are read.
	Weight  int
	Zone    string
	Version string // of the program

	// Disabled: the instance stands, and wants no calls.
	Disabled bool

	Registered time.Time // in milliseconds; zero if it is not known
	Type       ServiceType
	// URISpec is a template such as "{scheme}://{address}:{port}", see [ServiceInstance.URI].
	URISpec string

	// Payload is Curator's payload, decoded: a string of [CuratorString], a T of [CuratorJSON].
	Payload any

	// Raw is the data of the node that was read. When an instance with Raw is written, fields
	// that the codec does not know stay as they are there.
	Raw json.RawMessage
}

// Clone returns a copy that shares nothing with i but what Payload refers to.
func (i ServiceInstance) Clone() ServiceInstance {
	i.Endpoints, i.Raw, i.Metadata = slices.Clone(i.Endpoints), slices.Clone(i.Raw), maps.Clone(i.Metadata)
	return i
}

// HostPort is the address with the port, or with the TLS port if there is no other.
func (i ServiceInstance) HostPort() string {
	port := i.Port
	if port == 0 {
		port = i.TLSPort
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(port))
}

// String is for logs.
func (i ServiceInstance) String() string {
	return fmt.Sprintf("%s/%s at %s", i.Service, i.ID, i.HostPort())
}

// ServiceType says for how long an instance stands: Curator's enum of that name.
type ServiceType int

// The types.
const (
	Dynamic           ServiceType = iota // until its session ends
	Static                               // until a client deletes it
	Permanent                            // the same
	DynamicSequential                    // until its session ends; the servers append a number to its node's name
)

// String returns Curator's name of the type.
func (t ServiceType) String() string {
	names := [...]string{"DYNAMIC", "STATIC", "PERMANENT", "DYNAMIC_SEQUENTIAL"}
	if t < 0 || int(t) >= len(names) {
		return "unknown"
	}
	return names[t]
}
