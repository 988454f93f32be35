package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/ctxerr"
	"github.com/docent-go/docent/recipes/nodes"
)

// ServiceDiscovery is the services below one base path, in one layout. It is safe for concurrent
// use. It keeps nothing, so it needs no Start and no Close.
type ServiceDiscovery struct {
	c     *client.Client
	base  string
	codec Codec
}

// New returns the services below base. It does no I/O. If base is empty, it is the usual one of
// the codec. The instances of a service are right below base/<service>.
func New(c *client.Client, base string, codec Codec) (*ServiceDiscovery, error) {
	switch {
	case c == nil:
		return nil, errors.New("discovery: the client is nil; make one with client.Connect")
	case codec == nil:
		return nil, errors.New("discovery: the codec is nil; CuratorMap and SpringCloud return some")
	case base == "" && codec.Base() == "":
		return nil, fmt.Errorf(`discovery: %s has no usual base path; give one, like "/services"`, codec.Name())
	case base == "":
		base = codec.Base()
	}
	if _, err := inner.ServerPath(c, base); err != nil {
		return nil, fmt.Errorf("discovery: base path: %w", err)
	}
	return &ServiceDiscovery{c, base, codec}, nil
}

// Base is the path of the services.
func (d *ServiceDiscovery) Base() string { return d.base }

// Codec is the layout.
func (d *ServiceDiscovery) Codec() Codec { return d.codec }

// Path is the path of the folder of a service.
func (d *ServiceDiscovery) Path(service string) string {
	return strings.TrimSuffix(d.base, "/") + "/" + service
}

// folder is Path, if a service can have that name.
func (d *ServiceDiscovery) folder(service string) (string, error) {
	if service == "" {
		return "", errors.New("discovery: the name of the service is empty")
	}
	path := d.Path(service)
	if _, err := inner.ServerPath(d.c, path); err != nil {
		return "", fmt.Errorf("discovery: name of the service: %w", err)
	}
	return path, nil
}

// HostAddress is the address of this host as the servers of ZooKeeper see it: the local address of
// the newest connection. It waits for a connection. On a host with several addresses it is the
// one that leads to the servers. Behind a translation of addresses, as in a container with a
// network of its own, it may be one that nobody can call; give the address by a setting there.
func HostAddress(ctx context.Context, c *client.Client) (string, error) {
	ctxerr.Require(ctx)
	if c == nil {
		return "", errors.New("discovery: the client is nil; make one with client.Connect")
	}
	if _, err := c.Session(ctx); err != nil {
		return "", fmt.Errorf("discovery: host address: %w", err)
	}
	if at := inner.LocalAddress(c); at != "" {
		return at, nil
	}
	return "", errors.New("discovery: host address: the client's dialer has no IP addresses; give the address by a setting")
}

// Register makes an instance known, and returns as soon as its node stands. It is
// [ServiceDiscovery.NewRegistration] and [Registration.Start]. After an error nothing is kept.
// Register when the service is ready to be called: callers come at once.
func (d *ServiceDiscovery) Register(ctx context.Context, i ServiceInstance, opts ...nodes.Option) (*Registration, error) {
	ctxerr.Require(ctx)
	r, err := d.NewRegistration(i, opts...)
	if err != nil {
		return nil, err
	}
	if err := r.Start(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Services returns the names right below the base path, sorted. A base path that does not exist
// has none, which is no error. A name may be that of a service without instances: servers remove
// an empty folder a while after its last instance, if it is a container.
func (d *ServiceDiscovery) Services(ctx context.Context) ([]string, error) {
	ctxerr.Require(ctx)
	names, _, err := d.c.Children(ctx, d.base)
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discovery: services: %w", err)
	}
	if d.base == "/" {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "zookeeper" }) // the servers' own
	}
	slices.Sort(names)
	return names, nil
}

// Instances reads the instances of a service once. A service that does not exist has none, which
// is no error. To ask more than once, take a [ServiceCache], which costs no request for an
// answer.
func (d *ServiceDiscovery) Instances(ctx context.Context, service string) (*Snapshot, error) {
	ctxerr.Require(ctx)
	s, err := d.Cache(service)
	if err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	now := s.Snapshot()
	s.Close()
	return now, nil
}

// edits is how often Edit begins again because another client has set the node meanwhile.
const edits = 100

// Edit changes the node of an instance, whoever has registered it. It reads the node, calls edit
// with the instance, and writes it in the version that was read; if another client was faster it
// begins again. What the codec does not know stays, and so must the service, the ID and the type.
// So an operator disables an instance of a
// Java service:
//
//	err := d.Edit(ctx, "orders", node, func(i *discovery.ServiceInstance) error {
//		i.Disabled = true
//		return nil
//	})
//
// A program changes its own instance by [Registration.Update] instead: it would make the node
// again without the edit, after its session is lost. The same is true of other programs and
// their instances.
//
// The error is that of edit, of the codec, or of the client. It matches client.ErrNoNode if the
// instance is gone, and client.UnknownOutcome says whether it may have been written.
func (d *ServiceDiscovery) Edit(ctx context.Context, service, node string, edit func(*ServiceInstance) error) error {
	ctxerr.Require(ctx)
	folder, err := d.folder(service)
	if err != nil {
		return err
	}
	path := folder + "/" + node
	fail := func(err error) error { return fmt.Errorf("discovery: edit %s: %w", path, err) }
	for range edits {
		data, stat, err := d.c.Get(ctx, path)
		if err != nil {
			return fail(err)
		}
		i, err := d.decode(service, node, data)
		if err != nil {
			return fail(err)
		}
		was := *i
		if err := edit(i); err != nil {
			return fail(err)
		}
		for what, same := range map[string]bool{"service": i.Service == was.Service, "ID": i.ID == was.ID, "type": i.Type == was.Type} {
			if !same {
				return fail(fmt.Errorf("the %s is another; delete the node, and register again", what))
			}
		}
		now, err := d.encode(i)
		if err != nil {
			return fail(err)
		}
		_, err = d.c.Set(ctx, path, now.Data, stat.Version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, client.ErrBadVersion) {
			return fail(err)
		}
	}
	return fail(errors.New("other clients set it all the time"))
}

// encode is the node of an instance, which a reader can use.
func (d *ServiceDiscovery) encode(i *ServiceInstance) (Encoded, error) {
	if i.Weight < 0 {
		return Encoded{}, fmt.Errorf("discovery: the weight %d is negative; leave it 0 if it does not matter", i.Weight)
	}
	now, err := d.codec.Encode(i)
	if err != nil {
		return Encoded{}, err
	}
	if now.Node == "" || strings.Contains(now.Node, "/") {
		return Encoded{}, fmt.Errorf(`discovery: the ID %q is no name of a node; it has no "/" in it`, i.ID)
	}
	read, err := d.decode(i.Service, now.Node, now.Data)
	if err != nil {
		return Encoded{}, fmt.Errorf("discovery: no reader could use the instance: %w", err)
	}
	return now, usable(read)
}

// decode is the instance of a node. A codec that panics must not end every program that reads
// the node.
func (d *ServiceDiscovery) decode(service, node string, data []byte) (i *ServiceInstance, err error) {
	defer func() {
		if p := recover(); p != nil {
			i, err = nil, fmt.Errorf("the codec panics: %v\n%s", p, debug.Stack())
		}
	}()
	i, err = d.codec.Decode(service, node, data)
	if err == nil && i == nil {
		err = errors.New("the codec returns no instance")
	}
	if err == nil {
		i.Node, i.Weight = node, max(0, i.Weight)
	}
	return i, err
}

// usable returns an error if nobody could call the instance.
func usable(i *ServiceInstance) error {
	isPort := func(n int) bool { return n > 0 && n <= 65535 }
	switch {
	case i.Address == "":
		return fmt.Errorf("%w: its address is empty", ErrUnusable)
	case isEveryAddress(i.Address):
		return fmt.Errorf("%w: the address %q is every address of a host and none to call: give one, or that of discovery.HostAddress", ErrUnusable, i.Address)
	case !isHost(i.Address):
		return fmt.Errorf("%w: the address %q is neither a host name nor an IP address%s", ErrUnusable, short([]byte(i.Address)), portless(i.Address))
	case !isPort(i.Port) && !isPort(i.TLSPort):
		return fmt.Errorf("%w: it has no port", ErrUnusable)
	}
	return nil
}

// isEveryAddress reports whether a text is the address that only listeners use, such as 0.0.0.0.
func isEveryAddress(text string) bool {
	at, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return err == nil && at.Unmap().IsUnspecified()
}

// portless says what to do about an address with a port.
func portless(address string) string {
	if _, port, err := net.SplitHostPort(address); err == nil && port != "" {
		return "; the port belongs into Port"
	}
	return ""
}

// isHost reports whether a text may be a host name or an IP address.
func isHost(text string) bool {
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`/?#@[]\"<>%`, r)
	}
	if strings.Contains(text, ":") {
		at, err := netip.ParseAddr(text)
		return err == nil && !strings.ContainsFunc(at.Zone(), odd) // ParseAddr takes any zone
	}
	return !strings.ContainsFunc(text, odd)
}
