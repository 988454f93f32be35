package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// bean is a payload class with an id, a name and metadata, such as Spring's and Dubbo's
// ZookeeperInstance.
type bean struct {
	class  string
	status bool // the metadata says whether the instance wants calls
}

// The members of a bean, but for those that Curator's JSON has too.
const (
	metadataMember = "metadata"
	statusKey      = "instance_status"
	statusUp       = "UP"
	statusDown     = "OUT_OF_SERVICE"
)

func (b bean) write(i *ServiceInstance, old json.RawMessage) (json.RawMessage, error) {
	first := len(i.Raw) == 0
	all := describe(i, described)
	if b.status && (first || b.isDisabled(i.Raw) != i.Disabled) {
		if all == nil {
			all = map[string]string{}
		}
		all[statusKey] = statusUp
		if i.Disabled {
			all[statusKey] = statusDown
		}
	}
	if old == nil && !first && len(all) == 0 {
		return null, nil
	}
	d := &document{members: []member{{classMember, quoted(b.class)}, {idMember, quoted(i.ID)}, {nameMember, null}}}
	if old != nil {
		var err error
		if d, err = object(old); err != nil {
			return nil, fmt.Errorf("discovery: Raw: the payload is no object")
		}
	}
	if d.at(nameMember) >= 0 {
		d.putText(nameMember, i.Service)
	}
	in, err := d.inside(metadataMember)
	if err != nil {
		return nil, fmt.Errorf("discovery: Raw: payload: %w", err)
	}
	in.read = false
	in.putMap(all, "")
	if len(in.members) > 0 || first {
		d.set(metadataMember, in.bytes())
	}
	return d.bytes(), nil
}

// isDisabled reports whether a node says that its instance wants no calls.
func (b bean) isDisabled(raw json.RawMessage) bool {
	var was ServiceInstance
	err := decodeCurator(&was, raw, payloads{read: b.read})
	return err == nil && was.Disabled
}

// isUp reports whether metadata says that the instance wants calls (Spring: StatusConstants).
func isUp(all map[string]string) bool {
	status, said := all[statusKey]
	return !said || strings.EqualFold(status, statusUp)
}

func (b bean) read(i *ServiceInstance, value json.RawMessage) error {
	if value == nil {
		return nil
	}
	d, err := object(value)
	if err != nil {
		return fmt.Errorf("%s is no object", short(value))
	}
	in, err := d.inside(metadataMember)
	if err != nil {
		return err
	}
	describedBy(i, mapOf(in, ""), described)
	if b.status && !isUp(i.Metadata) {
		i.Disabled = true
	}
	return nil
}

// SpringCloud is the layout of Spring Cloud Zookeeper; its base is /services. Zone, Weight
// and Version have the keys "zone", "weight" and "version" in the metadata, of which Spring's load
// balancer reads the first two. A disabled instance has the "instance_status" OUT_OF_SERVICE there, others
// have UP. Without a URISpec the instance gets Spring's own. An instance with a TLSPort is
// called there by Spring, with https.
//
// Do not put another layout below the same base: one node with a payload of another class fails
// every query of the service in Spring.
func SpringCloud() Codec {
	b := bean{"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance", true}
	c := curator("SpringCloud", "/services", ofCurator|described, payloads{
		write: b.write,
		read:  b.read,
		says:  true,
	})
	encode := c.encode
	c.encode = func(i *ServiceInstance) (Encoded, error) {
		own := *i
		if own.URISpec == "" && len(own.Raw) == 0 {
			own.URISpec = usualSpec
			if own.Port == 0 {
				own.URISpec = "{scheme}://{address}:{ssl-port}"
			}
		}
		node, err := encode(&own)
		i.ID = own.ID
		return node, err
	}
	return c
}

// Dubbo is the layout of Dubbo 3 at the application level; its base is /services, which is
// Spring's too, so their services must not have the same names. Dubbo's own metadata, such as
// "dubbo.metadata.revision", is the Metadata. Without an ID the instance has "<address>:<port>",
// as Dubbo's have. Dubbo does not look whether an instance is disabled, so that is not carried.
func Dubbo() Codec {
	b := bean{"org.apache.dubbo.registry.zookeeper.ZookeeperInstance", false}
	c := curator("Dubbo", "/services", tlsPort|uriSpec|described, payloads{
		write: b.write,
		read:  b.read,
	})
	encode := c.encode
	c.encode = func(i *ServiceInstance) (Encoded, error) {
		if err := addressed(i); err != nil {
			return Encoded{}, err
		}
		return encode(i)
	}
	return c
}

var errNoAddress = errors.New("discovery: the instance has no address or no port; HostAddress tells the address that servers see")

// addressed gives an instance without an ID its address as one.
func addressed(i *ServiceInstance) error {
	if i.Address == "" || i.Port == 0 && i.TLSPort == 0 {
		return errNoAddress
	}
	if i.ID == "" {
		i.ID = i.HostPort()
	}
	return nil
}
