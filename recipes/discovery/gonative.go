package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// rawDocument is the document in i.Raw, an empty one if there is none.
func rawDocument(i *ServiceInstance) (*document, error) {
	if len(i.Raw) == 0 {
		return &document{}, nil
	}
	d, err := parse(i.Raw)
	if err != nil {
		return nil, fmt.Errorf("discovery: Raw: %w", err)
	}
	return d, nil
}

// putGoMap puts a map as encoding/json writes it: null if it is empty.
func (d *document) putGoMap(key string, all map[string]string) error {
	in, err := d.inside(key)
	if err != nil {
		return fmt.Errorf("discovery: Raw: %w", err)
	}
	was := mapOf(in, "")
	if maps.Equal(was, all) && d.at(key) >= 0 {
		return nil
	}
	in.read = false
	in.putMap(all, "")
	value := null
	if len(in.members) > 0 {
		value = in.bytes()
	}
	d.put(key, value, func(old json.RawMessage) bool { return old == nil && len(in.members) == 0 })
	return nil
}

// Kratos is the layout of kratos; its base is /microservices. An instance has Endpoints, such as
// "grpc://10.0.0.7:9000?isSecure=false". Address and Port are those of the first one with a
// port; if it is secure, the port is the TLSPort. They may be left empty in an instance that is
// written. Zone and Weight have the keys "zone" and "weight" in the metadata. Without an ID the
// instance gets a new UUID.
func Kratos() Codec {
	const inMetadata = metadata | weight | zone
	return &layout{
		name: "Kratos", base: "/microservices", carries: tlsPort | endpoints | version | inMetadata,
		encode: func(i *ServiceInstance) (Encoded, error) {
			d, err := rawDocument(i)
			if err != nil {
				return Encoded{}, err
			}
			if err := sameEndpoint(i); err != nil {
				return Encoded{}, fmt.Errorf("discovery: Kratos: %w", err)
			}
			node := named(i, nil)
			d.put(idMember, quoted(i.ID), sameText(i.ID))
			d.put(nameMember, quoted(i.Service), sameText(i.Service))
			d.put("version", quoted(i.Version), sameText(i.Version))
			err = d.putGoMap(metadataMember, describe(i, inMetadata))
			all, _ := json.Marshal(i.Endpoints) // of strings
			d.put("endpoints", all, func(old json.RawMessage) bool {
				was, err := textsOf(old)
				return err == nil && slices.Equal(was, i.Endpoints)
			})
			node.Data = d.bytes()
			return node, err
		},
		decode: func(i *ServiceInstance, data []byte) error {
			d, err := parse(data)
			if err != nil {
				return err
			}
			id, bad1 := textOf(d.get(idMember))
			name, bad2 := textOf(d.get(nameMember))
			if id != "" {
				i.ID = id
			}
			if name != "" {
				i.Service = name
			}
			var bad3, bad4 error
			i.Version, bad3 = textOf(d.get("version"))
			i.Endpoints, bad4 = textsOf(d.get("endpoints"))
			in, bad5 := d.inside(metadataMember)
			err = errors.Join(wrong(idMember, bad1), wrong(nameMember, bad2), wrong("version", bad3), wrong("endpoints", bad4), bad5)
			if err != nil {
				return err
			}
			describedBy(i, mapOf(in, ""), inMetadata)
			return endpointOf(i, i.Endpoints)
		},
	}
}

func sameText(text string) func(json.RawMessage) bool {
	return func(old json.RawMessage) bool {
		was, err := textOf(old)
		return err == nil && was == text
	}
}

// textsOf is a list of texts.
func textsOf(value json.RawMessage) (all []string, err error) {
	if value == nil {
		return nil, nil
	}
	if err := json.Unmarshal(value, &all); err != nil {
		return nil, fmt.Errorf("%s is no list of texts", short(value))
	}
	return all, nil
}

// endpointOf sets the address of an instance to that of its first endpoint with a port.
func endpointOf(i *ServiceInstance, all []string) error {
	for _, text := range all {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue
		}
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			continue
		}
		i.Address, i.Port, i.TLSPort = u.Hostname(), int(n), 0
		if u.Query().Get("isSecure") == "true" || u.Scheme == "https" || u.Scheme == "grpcs" {
			i.Port, i.TLSPort = 0, i.Port
		}
		return nil
	}
	return errors.New(`there is no endpoint with a host and a port; "grpc://10.0.0.7:9000?isSecure=false" is one`)
}

// sameEndpoint returns an error if the address of an instance is not that of its endpoints.
func sameEndpoint(i *ServiceInstance) error {
	first := *i
	if err := endpointOf(&first, i.Endpoints); err != nil {
		return err
	}
	if i.Address != "" && i.HostPort() != first.HostPort() {
		return fmt.Errorf("the address is %s and the first endpoint %s; leave the address empty, or change both", i.HostPort(), first.HostPort())
	}
	return nil
}

// Kitex is the layout of kitex; its base is /. The name of a node is "<address>:<port>", so
// another ID is refused. Metadata are kitex's tags. Zone and Version have the keys "zone" and
// "version" there.
func Kitex() Codec {
	const inTags = metadata | zone | version
	return &layout{
		name: "Kitex", base: "/", carries: weight | inTags,
		encode: func(i *ServiceInstance) (Encoded, error) {
			d, err := rawDocument(i)
			if err == nil {
				err = addressed(i)
			}
			if err == nil && i.ID != i.HostPort() {
				err = fmt.Errorf("%w: Kitex has no place for an ID; leave it empty", ErrNotCarried)
			}
			if err != nil {
				return Encoded{}, err
			}
			d.putWeight("Weight", i.Weight)
			err = d.putGoMap("Tags", describe(i, inTags))
			return Encoded{Node: i.ID, Data: d.bytes()}, err
		},
		decode: func(i *ServiceInstance, data []byte) error {
			d, err := parse(data)
			if err != nil {
				return err
			}
			wants, bad1 := weightIn(d.get("Weight"))
			in, bad2 := d.inside("Tags")
			bad3 := atHostPort(i, i.Node)
			if err := errors.Join(wrong("Weight", bad1), bad2, wrong("name of the node", bad3)); err != nil {
				return err
			}
			i.Weight = wants
			describedBy(i, mapOf(in, ""), inTags)
			return nil
		},
	}
}

// atHostPort sets the address of an instance.
func atHostPort(i *ServiceInstance, text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is no host:port", short([]byte(text)))
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%q is no port", short([]byte(port)))
	}
	i.Address, i.Port = host, int(n)
	return nil
}

// HostPort is a node whose data is "<address>:<port>". Without an ID the name of the node is the same.
func HostPort() Codec {
	return &layout{
		name: "HostPort", carries: sequential,
		encode: func(i *ServiceInstance) (Encoded, error) {
			if err := addressed(i); err != nil {
				return Encoded{}, err
			}
			return Encoded{Node: i.ID, Data: []byte(i.HostPort()), Sequential: i.Type == DynamicSequential}, nil
		},
		decode: func(i *ServiceInstance, data []byte) error { return atHostPort(i, string(data)) },
	}
}

// GoKit is the layout of go-kit's sd/zk: sequential nodes, whose data is "<address>:<port>". A
// URL as the data is read too, as the one of Endpoints, and written if there is one. Without
// an ID the node is called "_c_<GUID>-" and its number, as those of go-kit. An ID takes the place of
// what is before the number.
func GoKit() Codec {
	return &layout{
		name: "GoKit", carries: sequential | endpoints | tlsPort,
		encode: func(i *ServiceInstance) (Encoded, error) {
			text := i.HostPort()
			switch {
			case len(i.Endpoints) == 1:
				if err := sameEndpoint(i); err != nil {
					return Encoded{}, fmt.Errorf("discovery: GoKit: %w", err)
				}
				text = i.Endpoints[0]
			case len(i.Endpoints) > 1:
				return Encoded{}, fmt.Errorf("%w: GoKit has a place for one endpoint", ErrNotCarried)
			case i.TLSPort != 0:
				return Encoded{}, fmt.Errorf("%w: GoKit has a place for a TLSPort in an endpoint, such as https://host:port", ErrNotCarried)
			case i.Address == "" || i.Port == 0:
				return Encoded{}, errNoAddress
			}
			if i.ID == "" {
				i.ID = "_c_" + strings.ReplaceAll(newID(), "-", "") + "-"
			}
			return Encoded{Node: i.ID, Data: []byte(text), Sequential: true}, nil
		},
		decode: func(i *ServiceInstance, data []byte) error {
			i.ID = withoutNumber(i.Node)
			text := string(data)
			if strings.Contains(text, "://") {
				i.Endpoints = []string{text}
				return endpointOf(i, i.Endpoints)
			}
			return atHostPort(i, text)
		},
	}
}

// withoutNumber is the name of a node without the ten digits of a sequential one.
func withoutNumber(node string) string {
	const digits = 10
	if n := len(node) - digits; n > 0 && strings.Trim(node[n:], "0123456789") == "" {
		return node[:n]
	}
	return node
}
