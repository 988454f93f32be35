package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// The members of Curator's JSON, in the order of its fields.
const (
	nameMember       = "name"
	idMember         = "id"
	addressMember    = "address"
	portMember       = "port"
	sslPortMember    = "sslPort"
	payloadMember    = "payload"
	registeredMember = "registrationTimeUTC"
	typeMember       = "serviceType"
	uriSpecMember    = "uriSpec"
	enabledMember    = "enabled"
)

// classMember names the Java class of an object.
const classMember = "@class"

const ofCurator = tlsPort | disabled | sequential | uriSpec

// payloads is how one kind of Curator's payload is written and read.
type payloads struct {
	// write returns the payload. old is that of the node, nil if there is none.
	write func(i *ServiceInstance, old json.RawMessage) (json.RawMessage, error)
	// read takes a payload; nil stands for null.
	read func(i *ServiceInstance, value json.RawMessage) error
	// says: the payload says whether the instance is disabled.
	says bool
}

// curator returns a layout of Curator's JSON with payloads of one kind.
func curator(name, base string, carries fields, p payloads) *layout {
	return &layout{
		name: name, base: base, carries: carries,
		encode: func(i *ServiceInstance) (Encoded, error) {
			node := named(i, nil)
			data, err := encodeCurator(i, p)
			node.Data = data
			return node, err
		},
		decode: func(i *ServiceInstance, data []byte) error { return decodeCurator(i, data, p) },
	}
}

// encodeCurator writes what Jackson writes of Curator's ServiceInstance. Members of i.Raw that
// say the same already keep their form.
func encodeCurator(i *ServiceInstance, p payloads) ([]byte, error) {
	d := &document{}
	if len(i.Raw) > 0 {
		var err error
		if d, err = parse(i.Raw); err != nil {
			return nil, fmt.Errorf("discovery: Raw: %w", err)
		}
	}
	spec, err := uriSpecFor(i.URISpec)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	load, err := p.write(i, d.get(payloadMember))
	if err != nil {
		return nil, err
	}
	if i.Type < Dynamic || i.Type > DynamicSequential {
		return nil, fmt.Errorf("discovery: there is no ServiceType %d", int(i.Type))
	}
	d.putText(nameMember, i.Service)
	d.putText(idMember, i.ID)
	d.putText(addressMember, i.Address)
	d.putInt(portMember, int64(i.Port), "null")
	d.putInt(sslPortMember, int64(i.TLSPort), "null")
	d.put(payloadMember, load, func(old json.RawMessage) bool {
		return string(old) == string(load) || old == nil && isNull(load)
	})
	d.putInt(registeredMember, millis(i.Registered), "0")
	d.put(typeMember, quoted(i.Type.String()), func(old json.RawMessage) bool {
		was, err := typeOf(old)
		return err == nil && was == i.Type
	})
	d.put(uriSpecMember, spec, func(old json.RawMessage) bool { return uriSpecOf(old) == i.URISpec })
	if i.Disabled && !p.says || d.at(enabledMember) >= 0 {
		value := marshalled(!i.Disabled)
		d.put(enabledMember, value, func(old json.RawMessage) bool { return string(old) == string(value) })
	}
	return d.bytes(), nil
}

// decodeCurator reads what Jackson reads. Members that are not there are null.
func decodeCurator(i *ServiceInstance, data []byte, p payloads) error {
	d, err := parse(data)
	if err != nil {
		return err
	}
	text := func(key string, to *string) {
		s, bad := textOf(d.get(key))
		if s != "" && s != *to { // the name that it has already costs no more memory
			*to = s
		}
		err = errors.Join(err, wrong(key, bad))
	}
	text(nameMember, &i.Service)
	text(idMember, &i.ID)
	text(addressMember, &i.Address)
	var bad [5]error
	i.Port, bad[0] = portOf(d.get(portMember))
	i.TLSPort, bad[1] = portOf(d.get(sslPortMember))
	i.Registered, bad[2] = timeOf(d.get(registeredMember))
	i.Type, bad[3] = typeOf(d.get(typeMember))
	i.URISpec = uriSpecOf(d.get(uriSpecMember))
	switch enabled := d.get(enabledMember); string(enabled) {
	case "", "true":
	case "false":
		i.Disabled = true
	default:
		bad[4] = fmt.Errorf("%s is neither true nor false", short(enabled))
	}
	err = errors.Join(err, wrong(portMember, bad[0]), wrong(sslPortMember, bad[1]),
		wrong(registeredMember, bad[2]), wrong(typeMember, bad[3]), wrong(enabledMember, bad[4]))
	if err != nil {
		return err
	}
	return wrong(payloadMember, p.read(i, d.get(payloadMember)))
}

// typeOf is a type by its name; null stands for Dynamic.
func typeOf(value json.RawMessage) (ServiceType, error) {
	name, err := textOf(value)
	if err != nil || value == nil {
		return Dynamic, err
	}
	for t := Dynamic; t <= DynamicSequential; t++ {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%s is no type; %v is one", short(value), Dynamic)
}

// Curator is the layout of Curator's discovery without payloads: of Java services whose payload
// class is Void. Every Java reader takes what it writes. It reads the nodes of all kinds of payloads,
// and leaves the payload alone; its Java readers refuse a payload.
//
// A disabled instance has "enabled":false, which Curator's readers honour, also those that
// never write it. Without an ID the instance gets a new UUID.
func Curator() Codec {
	return curator("Curator", "", ofCurator, payloads{
		write: func(_ *ServiceInstance, old json.RawMessage) (json.RawMessage, error) { return orNull(old), nil },
		read:  func(*ServiceInstance, json.RawMessage) error { return nil },
	})
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return null
	}
	return value
}

// CuratorString is [Curator] with a text as the payload: of Java services whose payload class is
// String. The Payload is a string, or nil.
func CuratorString() Codec {
	return curator("CuratorString", "", ofCurator|payload, payloads{
		write: func(i *ServiceInstance, _ json.RawMessage) (json.RawMessage, error) {
			switch text := i.Payload.(type) {
			case nil:
				return null, nil
			case string:
				return quoted(text), nil
			default:
				return nil, fmt.Errorf("%w: the payload is a %T, and CuratorString has strings", ErrNotCarried, text)
			}
		},
		read: func(i *ServiceInstance, value json.RawMessage) error {
			if value == nil {
				return nil
			}
			text, err := textOf(value)
			i.Payload = text
			return err
		},
	})
}

// CuratorMap is [Curator] with a map as the payload: of Java services whose payload class is Map or
// Object. The map is the Metadata. Zone, Weight and Version have the keys "zone", "weight"
// and "version" in it. Between Go programs it is the layout that carries most.
//
// Numbers and truth values are read as texts. Values of other kinds stay in the node, and are not read.
func CuratorMap() Codec {
	return curator("CuratorMap", "", ofCurator|described, payloads{
		write: func(i *ServiceInstance, old json.RawMessage) (json.RawMessage, error) {
			all := describe(i, described)
			if old == nil && len(all) == 0 {
				return null, nil
			}
			d := &document{members: []member{{classMember, quoted("java.util.HashMap")}}}
			if old != nil {
				var err error
				if d, err = object(old); err != nil {
					return nil, fmt.Errorf("discovery: Raw: the payload is no map")
				}
			}
			if _, taken := all[classMember]; taken {
				return nil, fmt.Errorf("%w: CuratorMap has no place for metadata with the key %q", ErrNotCarried, classMember)
			}
			d.read = false
			d.putMap(all, classMember)
			return d.bytes(), nil
		},
		read: func(i *ServiceInstance, value json.RawMessage) error {
			if value == nil {
				return nil
			}
			d, err := object(value)
			if err != nil {
				return fmt.Errorf("%s is no map", short(value))
			}
			describedBy(i, mapOf(d, classMember), described)
			return nil
		},
	})
}

// CuratorJSON is [Curator] with a payload of a Java class. The Payload is a T, or nil; T marshals to the
// JSON that Jackson has of that class. class is the name by which Java finds the class, such as
// "com.example.Details", or "com.example.Outer$Details" of a nested one. It is written as "@class" of an object,
// and before an array or a number of a class such as java.lang.Long, as Jackson does. Without a class nothing is
// added; of Java readers only those of Map and Object take an object then.
//
// Every class is read whose JSON is that of a T. Members of a payload that T does not know stay
// when it is written again.
func CuratorJSON[T any](class string) Codec {
	return curator("CuratorJSON", "", ofCurator|payload, payloads{
		write: func(i *ServiceInstance, old json.RawMessage) (json.RawMessage, error) {
			if i.Payload == nil {
				return null, nil
			}
			load, is := i.Payload.(T)
			if !is {
				return nil, fmt.Errorf("%w: the payload is a %T, want a %T", ErrNotCarried, i.Payload, load)
			}
			if _, err := json.Marshal(load); err != nil {
				return nil, fmt.Errorf("discovery: payload: %w", err)
			}
			return withClass[T](class, marshalled(load), old), nil
		},
		read: func(i *ServiceInstance, value json.RawMessage) error {
			if value == nil {
				return nil
			}
			load, err := payloadOf[T](class, value)
			if err != nil {
				return err
			}
			i.Payload = load
			return nil
		},
	})
}

// withClass is a payload with its class. Members of the old payload that no T has stay.
func withClass[T any](class string, value, old json.RawMessage) json.RawMessage {
	own, err := object(value)
	switch {
	case err != nil && !natural(class) && value[0] != '"' && !isNull(value):
		if wraps(old) {
			class = unquoted(scannedFirst(old))
		}
		return slices.Concat(json.RawMessage("["), quoted(class), json.RawMessage(","), value, json.RawMessage("]"))
	case err != nil:
		return value
	}
	d, err := object(orNull(old))
	if err != nil {
		d = &document{}
		if class != "" {
			d.set(classMember, quoted(class))
		}
	}
	if was, err := payloadOf[T](class, old); err == nil {
		if known, err := object(marshalled(was)); err == nil {
			for _, m := range known.members {
				if own.at(m.key) < 0 {
					d.remove(m.key)
				}
			}
		}
	}
	for _, m := range own.members {
		d.set(m.key, m.value)
	}
	return d.bytes()
}

// natural reports whether Jackson writes the values of a class without it.
func natural(class string) bool {
	return slices.Contains([]string{"", "java.lang.String", "java.lang.Integer", "java.lang.Double", "java.lang.Boolean"}, class)
}

// wraps reports whether Jackson has put the class of a value before it: ["java.lang.Long",5].
func wraps(value json.RawMessage) bool {
	if len(value) == 0 || value[0] != '[' {
		return false
	}
	s := scanner(value)
	s.past()
	first := s.value()
	if len(first) == 0 || first[0] != '"' || s[0] != ',' {
		return false
	}
	s.past()
	s.value()
	return s[0] == ']'
}

// scannedFirst is the first value of an array.
func scannedFirst(array json.RawMessage) []byte {
	s := scanner(array)
	s.past()
	return s.value()
}

// payloadOf reads a T, with or without its class.
func payloadOf[T any](class string, value json.RawMessage) (load T, err error) {
	if value == nil {
		return load, errors.New("there is none")
	}
	switch {
	case value[0] == '{':
		d, _ := object(value) // it is one
		d.remove(classMember)
		value = d.bytes()
	case class != "" && wraps(value):
		s := scanner(value)
		s.past()
		s.value()
		s.past()
		value = s.value()
	}
	if err := json.Unmarshal(value, &load); err != nil {
		return *new(T), err
	}
	return load, nil
}
