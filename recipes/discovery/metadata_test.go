package discovery_test

import (
	"maps"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/discovery"
)

// Metadata with the keys of fields is written as it is given while those fields are not set.
func TestMetadataOfFields(t *testing.T) {
	t.Parallel()
	given := map[string]string{"zone": "west", "weight": "5", "version": "1.2"}
	for _, codec := range []discovery.Codec{discovery.CuratorMap(), discovery.SpringCloud(), discovery.Dubbo(), discovery.Kratos()} {
		i := discovery.ServiceInstance{Service: "orders", ID: "a", Address: "10.0.0.7", Port: 80, Metadata: maps.Clone(given)}
		if codec.Name() == "Kratos" {
			i.Endpoints = []string{"grpc://10.0.0.7:80"}
		}
		e, err := codec.Encode(&i)
		if err != nil {
			t.Fatal(err)
		}
		read, err := codec.Decode("orders", e.Node, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range given {
			if read.Metadata[key] != value {
				t.Errorf("%s: %s is %q, want %q: %s", codec.Name(), key, read.Metadata[key], value, e.Data)
			}
		}
	}
}

// An edit that empties a field empties it in the node.
func TestEditEmpties(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.CuratorMap(), func(r *rig) {
		i := at("10.0.0.7", 80)
		i.Zone, i.Version, i.Weight = "west", "1.2", 3
		r.register(i)
		r.Check(r.other.Edit(r.Within(time.Minute), "orders", "a", func(i *discovery.ServiceInstance) error {
			i.Zone, i.Version, i.Weight = "", "", 0
			return nil
		}))
		now, err := r.other.Instances(r.Within(time.Minute), "orders")
		r.Check(err)
		if got := now.Instances[0]; got.Zone != "" || got.Version != "" || got.Weight != 0 {
			r.Errorf("zone %q, version %q, weight %d", got.Zone, got.Version, got.Weight)
		}
	})
}
