package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// host is a host and a port in JSON.
type hostJSON struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

const (
	memberPrefix = "member_"
	shardKey     = "shard"
	alive        = "ALIVE"
)

// Serverset is the layout of the server sets of Finagle and Aurora, which Prometheus reads too
// (serverset_sd). Endpoints are the additional ones, as "<name>=<host>:<port>". The only key
// of Metadata is "shard", a number. A disabled instance has the status DEAD. Prometheus still
// scrapes it; __meta_serverset_status has the status.
//
// Without an ID the node is called "member_" and the number that the servers give. Then let one
// client register no two instances of one service: after a lost answer they are not told
// apart. An ID takes the place of the number.
func Serverset() Codec {
	return &layout{
		name: "Serverset", carries: endpoints | metadata | disabled,
		encode: encodeServerset,
		decode: decodeServerset,
	}
}

func encodeServerset(i *ServiceInstance) (Encoded, error) {
	d, err := rawDocument(i)
	if err != nil {
		return Encoded{}, err
	}
	if i.Address == "" || i.Port == 0 {
		return Encoded{}, errNoAddress
	}
	more := &document{}
	for _, text := range slices.Sorted(slices.Values(i.Endpoints)) {
		name, at, _ := strings.Cut(text, "=")
		var to ServiceInstance
		if err := atHostPort(&to, at); err != nil || name == "" {
			return Encoded{}, fmt.Errorf("discovery: Serverset: the endpoint %q is no name=host:port", text)
		}
		more.set(name, marshalled(hostJSON{to.Address, to.Port}))
	}
	for key := range i.Metadata {
		if key != shardKey {
			return Encoded{}, fmt.Errorf("%w: Serverset has no place for metadata but %q", ErrNotCarried, shardKey)
		}
	}
	d.put("serviceEndpoint", marshalled(hostJSON{i.Address, i.Port}), func(old json.RawMessage) bool {
		host, port, err := endpointIn(old)
		return err == nil && host == i.Address && port == i.Port
	})
	d.put("additionalEndpoints", more.bytes(), func(old json.RawMessage) bool {
		was, err := namedEndpoints(old)
		return err == nil && slices.Equal(was, slices.Sorted(slices.Values(i.Endpoints)))
	})
	status := alive
	if i.Disabled {
		status = "DEAD"
	}
	d.put("status", quoted(status), func(old json.RawMessage) bool {
		was, err := textOf(old)
		return err == nil && old != nil && (was != alive) == i.Disabled
	})
	if shard, said := i.Metadata[shardKey]; !said {
		d.remove(shardKey)
	} else if n, err := strconv.ParseInt(shard, 10, 64); err != nil {
		return Encoded{}, fmt.Errorf("discovery: Serverset: the shard %q is no number", shard)
	} else {
		d.put(shardKey, strconv.AppendInt(nil, n, 10), func(old json.RawMessage) bool { return string(old) == shard })
	}
	if i.ID == "" {
		return Encoded{Node: memberPrefix, Data: d.bytes(), Sequential: true}, nil
	}
	return Encoded{Node: memberPrefix + i.ID, Data: d.bytes()}, nil
}

func decodeServerset(i *ServiceInstance, data []byte) error {
	id, is := strings.CutPrefix(i.Node, memberPrefix)
	if !is {
		return fmt.Errorf("the name does not begin with %q", memberPrefix)
	}
	d, err := parse(data)
	if err != nil {
		return err
	}
	i.ID = id
	var bad [4]error
	i.Address, i.Port, bad[0] = endpointIn(d.get("serviceEndpoint"))
	i.Endpoints, bad[1] = namedEndpoints(d.get("additionalEndpoints"))
	status, bad2 := textOf(d.get("status"))
	i.Disabled, bad[2] = status != alive, bad2
	if shard := d.get(shardKey); shard != nil {
		var n int64
		if n, bad[3] = intOf(shard); bad[3] == nil {
			i.Metadata = map[string]string{shardKey: strconv.FormatInt(n, 10)}
		}
	}
	return errors.Join(wrong("serviceEndpoint", bad[0]), wrong("additionalEndpoints", bad[1]), wrong("status", bad[2]), wrong(shardKey, bad[3]))
}

// endpointIn is the host and the port of an object.
func endpointIn(value json.RawMessage) (string, int, error) {
	if value == nil {
		return "", 0, errors.New("there is none")
	}
	d, err := object(value)
	if err != nil {
		return "", 0, fmt.Errorf("%s is no object", short(value))
	}
	host, bad1 := textOf(d.get("host"))
	port, bad2 := portOf(d.get("port"))
	return host, port, errors.Join(wrong("host", bad1), wrong("port", bad2))
}

// namedEndpoints are the endpoints of an object, sorted.
func namedEndpoints(value json.RawMessage) (all []string, err error) {
	if value == nil {
		return nil, nil
	}
	d, err := object(value)
	if err != nil {
		return nil, fmt.Errorf("%s is no object", short(value))
	}
	for _, m := range d.members {
		host, port, err := endpointIn(m.value)
		if err != nil {
			return nil, wrong(m.key, err)
		}
		all = append(all, m.key+"="+net.JoinHostPort(host, strconv.Itoa(port)))
	}
	slices.Sort(all)
	return all, nil
}

// Nerve is the layout of Nerve and Synapse, which Prometheus reads too (nerve_sd). The ID is the
// name in the node; without one it is "<address>:<port>". Metadata are Nerve's labels. Zone and
// Version have the keys "zone" and "version" there.
func Nerve() Codec {
	const inLabels = metadata | zone | version
	return &layout{
		name: "Nerve", carries: weight | inLabels,
		encode: func(i *ServiceInstance) (Encoded, error) {
			d, err := rawDocument(i)
			if err == nil {
				err = addressed(i)
			}
			if err != nil {
				return Encoded{}, err
			}
			d.putText("host", i.Address)
			d.putInt(portMember, int64(i.Port), "null")
			d.putText(nameMember, i.ID)
			if i.Weight != 0 || d.at("weight") >= 0 {
				d.putWeight("weight", i.Weight)
			}
			if all := describe(i, inLabels); len(all) > 0 || d.at("labels") >= 0 {
				err = d.putGoMap("labels", all)
			}
			return Encoded{Node: i.ID, Data: d.bytes()}, err
		},
		decode: func(i *ServiceInstance, data []byte) error {
			d, err := parse(data)
			if err != nil {
				return err
			}
			var bad [4]error
			i.Address, bad[0] = textOf(d.get("host"))
			i.Port, bad[1] = portOf(d.get(portMember))
			name, bad2 := textOf(d.get(nameMember))
			if bad[2] = bad2; name != "" {
				i.ID = name
			}
			i.Weight, bad[3] = weightIn(d.get("weight"))
			in, bad4 := d.inside("labels")
			if err := errors.Join(wrong("host", bad[0]), wrong(portMember, bad[1]), wrong(nameMember, bad[2]), wrong("weight", bad[3]), bad4); err != nil {
				return err
			}
			describedBy(i, mapOf(in, ""), inLabels)
			return nil
		},
	}
}
