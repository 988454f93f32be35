package discovery

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
)

// ErrNotCarried says that a codec has no place for a field of an instance. Nothing was written.
var ErrNotCarried = errors.New("discovery: the codec cannot carry it")

// Codec is a layout: how a registry writes an instance into a node. The functions of this
// package that return a Codec are the layouts in the wild; a program may have its own. A codec
// has no state, and any number of goroutines may use it.
type Codec interface {
	// Name is for messages.
	Name() string
	// Base is the path under which the registry has its services, "" if it has no usual one.
	Base() string
	// Encode returns the node of an instance. If i.ID is empty, Encode sets it, unless the
	// servers name the node. The error matches [ErrNotCarried] if the codec has no place for
	// a field that is set. Of i.Raw it keeps what the codec does not know.
	Encode(i *ServiceInstance) (Encoded, error)
	// Decode returns the instance of the node with that name and data. An error makes the
	// node [Skipped]. Decode may keep data, which nobody changes.
	Decode(service, node string, data []byte) (*ServiceInstance, error)
}

// Encoded is what a codec makes of an instance.
type Encoded struct {
	// Node is the name of the node, without the number of a sequential one.
	Node string
	Data []byte
	// Sequential: the servers append a number of ten digits to the name.
	Sequential bool
}

// layout is a codec of this package.
type layout struct {
	name, base string
	carries    fields
	encode     func(*ServiceInstance) (Encoded, error)
	decode     func(i *ServiceInstance, data []byte) error
}

func (l *layout) Name() string { return l.name }

func (l *layout) Base() string { return l.base }

func (l *layout) Encode(i *ServiceInstance) (Encoded, error) {
	if missing := l.carries.missing(i); missing != "" {
		return Encoded{}, fmt.Errorf("%w: %s has no place for %s%s", ErrNotCarried, l.name, missing, l.instead(i))
	}
	return l.encode(i)
}

// instead names the layout of Curator that has a place for all fields of i.
func (l *layout) instead(i *ServiceInstance) string {
	if strings.HasPrefix(l.name, "Curator") && (ofCurator|described).missing(i) == "" {
		return "; CuratorMap has"
	}
	return ""
}

func (l *layout) Decode(service, node string, data []byte) (*ServiceInstance, error) {
	if len(data) == 0 {
		return nil, errEmpty
	}
	i := &ServiceInstance{Service: service, ID: node, Node: node, Raw: data}
	if err := l.decode(i, data); err != nil {
		return nil, err
	}
	return i, nil
}

var errEmpty = errors.New("the node has no data")

// fields are those of an instance that not every codec has a place for.
type fields uint

const (
	tlsPort fields = 1 << iota
	endpoints
	metadata
	weight
	zone
	version
	disabled
	sequential
	uriSpec
	payload

	described = metadata | weight | zone | version // what metadata can hold
)

// missing is the name of a field that is set in i and is none of f, or "".
func (f fields) missing(i *ServiceInstance) string {
	for _, have := range [...]struct {
		field fields
		set   bool
		name  string
	}{
		{tlsPort, i.TLSPort != 0, "TLSPort"},
		{endpoints, len(i.Endpoints) > 0, "Endpoints"},
		{metadata, len(i.Metadata) > 0, "Metadata"},
		{weight, i.Weight != 0, "Weight"},
		{zone, i.Zone != "", "Zone"},
		{version, i.Version != "", "Version"},
		{disabled, i.Disabled, "Disabled"},
		{sequential, i.Type == DynamicSequential, "Type DynamicSequential"},
		{uriSpec, i.URISpec != "", "URISpec"},
		{payload, i.Payload != nil, "Payload"},
	} {
		if have.set && f&have.field == 0 {
			return have.name
		}
	}
	return ""
}

// The keys of what metadata holds for an instance whose codec has no field for it.
const (
	zoneKey    = "zone"
	weightKey  = "weight"
	versionKey = "version"
)

// describe returns the metadata of i, with the fields that have keys there. A field that is not
// set leaves the metadata alone, unless i was read: then it was set there, and is emptied.
func describe(i *ServiceInstance, keys fields) map[string]string {
	all := maps.Clone(i.Metadata)
	put := func(field fields, key, value string) {
		switch {
		case keys&field == 0:
		case value != "":
			if all == nil {
				all = map[string]string{}
			}
			all[key] = value
		case len(i.Raw) > 0 && all[key] != "":
			delete(all, key)
		}
	}
	put(zone, zoneKey, i.Zone)
	put(version, versionKey, i.Version)
	switch {
	case i.Weight == weightOf(i.Metadata): // in whatever form
	case i.Weight == 0:
		put(weight, weightKey, "")
	default:
		put(weight, weightKey, strconv.Itoa(i.Weight))
	}
	return all
}

// described sets the fields of i that have keys in its metadata.
func describedBy(i *ServiceInstance, all map[string]string, keys fields) {
	i.Metadata = all
	if keys&zone != 0 {
		i.Zone = all[zoneKey]
	}
	if keys&version != 0 {
		i.Version = all[versionKey]
	}
	if keys&weight != 0 {
		i.Weight = weightOf(all)
	}
}

// weightOf is the weight in metadata, 0 if there is none that is a number from 0 on.
func weightOf(all map[string]string) int {
	n, err := strconv.ParseInt(all[weightKey], 10, 32)
	if err != nil {
		return 0
	}
	return int(max(0, n))
}

// weightIn is the weight in a member. A negative one is none.
func weightIn(value json.RawMessage) (int, error) {
	n, err := intOf(value)
	return int(min(max(0, n), math.MaxInt)), err
}

// putWeight puts a weight, unless the member stands for the same.
func (d *document) putWeight(key string, weight int) {
	d.put(key, strconv.AppendInt(nil, int64(weight), 10), func(old json.RawMessage) bool {
		was, err := weightIn(old)
		return err == nil && was == weight
	})
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	all := hex.EncodeToString(b[:])
	return strings.Join([]string{all[:8], all[8:12], all[12:16], all[16:20], all[20:]}, "-")
}

// named is the node of an instance whose id is a UUID if the caller has given none.
func named(i *ServiceInstance, data []byte) Encoded {
	if i.ID == "" {
		i.ID = newID()
	}
	return Encoded{Node: i.ID, Data: data, Sequential: i.Type == DynamicSequential}
}
