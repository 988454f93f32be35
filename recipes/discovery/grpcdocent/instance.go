package grpcdocent

import (
	"bytes"

	"google.golang.org/grpc/attributes"

	"github.com/docent-go/docent/recipes/discovery"
)

// instanceKey is the key of the attribute that has the instance.
type instanceKey struct{}

// held is an instance as the value of an attribute.
type held struct{ instance *discovery.ServiceInstance }

// Equal reports whether o is the same instance with the same data.
func (h held) Equal(o any) bool {
	other, ok := o.(held)
	if !ok {
		return false
	}
	a, b := h.instance, other.instance
	return a == b || a.Node == b.Node && bytes.Equal(a.Raw, b.Raw)
}

func attributesOf(i *discovery.ServiceInstance) *attributes.Attributes {
	return attributes.New(instanceKey{}, held{i})
}

// InstanceOf returns the instance of an endpoint, for a balancing policy that goes by its zone,
// weight or metadata: attributes are those of a [google.golang.org/grpc/resolver.Endpoint], or the
// BalancerAttributes of an address. It returns false if the endpoint is not of this package. The
// instance is shared: change nothing in it.
func InstanceOf(attributes *attributes.Attributes) (*discovery.ServiceInstance, bool) {
	h, ok := attributes.Value(instanceKey{}).(held)
	return h.instance, ok
}
