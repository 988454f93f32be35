package discovery_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/docent-go/docent/recipes/discovery"
)

// pay is what a Java class of that shape is here.
type pay struct {
	Version string            `json:"version"`
	Weight  int               `json:"weight"`
	Tags    []string          `json:"tags"`
	Meta    map[string]string `json:"meta"`
}

// written is a node as the program that owns the layout has written it, and the instance that it is.
type written struct {
	codec   discovery.Codec
	service string // of the folder
	node    string
	data    string
	is      discovery.ServiceInstance
	fresh   bool // an instance with these fields is written so, byte for byte
}

const (
	springClass = "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance"
	dubboClass  = "org.apache.dubbo.registry.zookeeper.ZookeeperInstance"
	plainSpec   = `"uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true}]}`
)

func orders(f func(*discovery.ServiceInstance)) discovery.ServiceInstance {
	i := discovery.ServiceInstance{
		Service: "orders", ID: "id-1", Node: "id-1", Address: "10.0.0.7", Port: 8080,
		Registered: time.UnixMilli(1795486358465).UTC(),
	}
	if f != nil {
		f(&i)
	}
	return i
}

// texts are the texts of Curator 5.4, written by it, and those of the other layouts.
func texts() map[string]written {
	curator := func(before, load, after string) string {
		return `{"name":"orders","id":"id-1","address":"10.0.0.7","port":8080,"sslPort":` + before + `,"payload":` + load + `,"registrationTimeUTC":1795486358465,"serviceType":` + after + `}`
	}
	plain := `"DYNAMIC","uriSpec":null`
	at := func(host string, port int) func(*discovery.ServiceInstance) {
		return func(i *discovery.ServiceInstance) {
			i.Address, i.Port, i.Registered = host, port, time.Time{}
		}
	}
	return map[string]written{
		"Curator, no payload": {discovery.Curator(), "orders", "id-1", curator("null", "null", plain), orders(nil), true},
		"Curator, TLS and a template": {
			discovery.Curator(), "orders", "id-1",
			curator("8443", "null", `"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},{"value":"port","variable":true},{"value":"/x","variable":false}]}`),
			orders(func(i *discovery.ServiceInstance) {
				i.TLSPort, i.URISpec = 8443, "{scheme}://{address}:{port}/x"
			}), true,
		},
		"Curator, static":    {discovery.Curator(), "orders", "id-1", curator("null", "null", `"STATIC","uriSpec":null`), orders(func(i *discovery.ServiceInstance) { i.Type = discovery.Static }), true},
		"Curator, permanent": {discovery.Curator(), "orders", "id-1", curator("null", "null", `"PERMANENT","uriSpec":null`), orders(func(i *discovery.ServiceInstance) { i.Type = discovery.Permanent }), true},
		"Curator, sequential": {
			discovery.Curator(), "orders", "id-10000000000", curator("null", "null", `"DYNAMIC_SEQUENTIAL","uriSpec":null`),
			orders(func(i *discovery.ServiceInstance) {
				i.Node, i.Type = "id-10000000000", discovery.DynamicSequential
			}), true,
		},
		"Curator, disabled": {discovery.Curator(), "orders", "id-1", curator("null", "null", plain+`,"enabled":false`), orders(func(i *discovery.ServiceInstance) { i.Disabled = true }), true},
		"Curator, enabled":  {discovery.Curator(), "orders", "id-1", curator("null", "null", plain+`,"enabled":true`), orders(nil), false},
		"Curator, any payload": {
			discovery.Curator(), "orders", "id-1", curator("null", `{"@class":"Disc$Pay","version":"1.2"}`, plain), orders(nil), false,
		},
		"Curator, a text": {discovery.CuratorString(), "orders", "id-1", curator("null", `"zone=a"`, plain), orders(func(i *discovery.ServiceInstance) { i.Payload = "zone=a" }), true},
		"Curator, a text with everything": {
			discovery.CuratorString(), "orders", "id-1", curator("null", `"<a>&\"\\ä\n"`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Payload = "<a>&\"\\ä\n" }), true,
		},
		"Curator, no text": {discovery.CuratorString(), "orders", "id-1", curator("null", `null`, plain), orders(nil), true},
		"Curator, a number": {
			discovery.CuratorJSON[int]("java.lang.Integer"), "orders", "id-1", curator("null", `5`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Payload = 5 }), true,
		},
		"Curator, a long": {
			discovery.CuratorJSON[int64]("java.lang.Long"), "orders", "id-1", curator("null", `["java.lang.Long",5]`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Payload = int64(5) }), true,
		},
		"Curator, a list": {
			discovery.CuratorJSON[[]any]("java.util.ArrayList"), "orders", "id-1", curator("null", `["java.util.ArrayList",[1,"b"]]`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Payload = []any{1.0, "b"} }), true,
		},
		"Curator, a list without a class": {
			discovery.CuratorJSON[[]string](""), "orders", "id-1", curator("null", `["a.b","c"]`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Payload = []string{"a.b", "c"} }), true,
		},
		"Curator, a map": {
			discovery.CuratorMap(), "orders", "id-1", curator("null", `{"@class":"java.util.HashMap","n":5,"k":"v"}`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Metadata = map[string]string{"n": "5", "k": "v"} }), false,
		},
		"Curator, a map from here": {
			discovery.CuratorMap(), "orders", "id-1", curator("null", `{"@class":"java.util.HashMap","k":"v","version":"1.2","weight":"3","zone":"a"}`, plain),
			orders(func(i *discovery.ServiceInstance) {
				i.Zone, i.Weight, i.Version = "a", 3, "1.2"
				i.Metadata = map[string]string{"k": "v", "zone": "a", "weight": "3", "version": "1.2"}
			}), true,
		},
		"Curator, a map with more": {
			discovery.CuratorMap(), "orders", "id-1", curator("null", `{"zone":"a","deep":{"x":[1]},"none":null,"on":true,"@class":"java.util.LinkedHashMap"}`, plain),
			orders(func(i *discovery.ServiceInstance) {
				i.Zone, i.Metadata = "a", map[string]string{"zone": "a", "on": "true"}
			}), false,
		},
		"Curator, no map": {discovery.CuratorMap(), "orders", "id-1", curator("null", `null`, plain), orders(nil), true},
		"Curator, a class": {
			discovery.CuratorJSON[pay]("Disc$Pay"), "orders", "id-1",
			curator("null", `{"@class":"Disc$Pay","version":"1.2","weight":3,"tags":["a","b"],"meta":{"k":"v"}}`, plain),
			orders(func(i *discovery.ServiceInstance) {
				i.Payload = pay{"1.2", 3, []string{"a", "b"}, map[string]string{"k": "v"}}
			}), true,
		},
		"Curator, a class with more": {
			discovery.CuratorJSON[pay]("Disc$Pay"), "orders", "id-1",
			curator("null", `{"@class":"Disc$Other","version":"1.2","weight":3,"tags":[],"meta":{},"later":{"a":[1,2]}}`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Payload = pay{"1.2", 3, []string{}, map[string]string{}} }), false,
		},
		"Curator, fields left out": {
			discovery.Curator(), "orders", "id-1", `{"name":"orders","id":"id-1","address":"10.0.0.7","port":8080}`, orders(at("10.0.0.7", 8080)), false,
		},
		"Curator, in other forms": {
			discovery.Curator(), "orders", "id-1",
			`{"port":"8080","later":{"a":[1,"}"]},"address":"10.0.0.7","serviceType":null,"uriSpec":{"parts":[]},"\u0069d":"id-1","name":"orders"}`,
			orders(at("10.0.0.7", 8080)), false,
		},
		"Curator, another name": {
			discovery.Curator(), "folder", "node", `{"name":"orders","id":"id-1","address":"10.0.0.7","port":8080}`,
			orders(func(i *discovery.ServiceInstance) { at("10.0.0.7", 8080)(i); i.Node = "node" }), false,
		},
		"Curator, two of one name": {
			discovery.Curator(), "orders", "id-1", `{"name":"orders","id":"id-1","address":"10.0.0.1","port":1,"address":"10.0.0.7","port":8080}`, orders(at("10.0.0.7", 8080)), false,
		},
		"Spring": {
			discovery.SpringCloud(), "orders", "id-1",
			curator("null", `{"@class":"`+springClass+`","id":"application-1","name":"orders","metadata":{"zone":"a","instance_status":"UP"}}`, `"DYNAMIC",`+plainSpec),
			orders(func(i *discovery.ServiceInstance) {
				i.Zone, i.Metadata, i.URISpec = "a", map[string]string{"zone": "a", "instance_status": "UP"}, "{scheme}://{address}:{port}"
			}), false,
		},
		"Spring, from here": {
			discovery.SpringCloud(), "orders", "id-1",
			curator("8443", `{"@class":"`+springClass+`","id":"id-1","name":"orders","metadata":{"instance_status":"UP","zone":"a"}}`, `"DYNAMIC",`+plainSpec),
			orders(func(i *discovery.ServiceInstance) {
				i.Zone, i.Metadata, i.URISpec, i.TLSPort = "a", map[string]string{"zone": "a", "instance_status": "UP"}, "{scheme}://{address}:{port}", 8443
			}), true,
		},
		"Spring, out of service": {
			discovery.SpringCloud(), "orders", "id-1",
			curator("null", `{"@class":"`+springClass+`","id":"id-1","name":"orders","metadata":{"instance_status":"OUT_OF_SERVICE"}}`, `"DYNAMIC",`+plainSpec),
			orders(func(i *discovery.ServiceInstance) {
				i.Disabled, i.Metadata, i.URISpec = true, map[string]string{"instance_status": "OUT_OF_SERVICE"}, "{scheme}://{address}:{port}"
			}), true,
		},
		"Spring, status in lower case, and no metadata": {
			discovery.SpringCloud(), "orders", "id-1", curator("null", `{"@class":"`+springClass+`","id":"x","metadata":{"instance_status":"up"},"extra":1}`, plain),
			orders(func(i *discovery.ServiceInstance) { i.Metadata = map[string]string{"instance_status": "up"} }), false,
		},
		"Spring, no payload": {discovery.SpringCloud(), "orders", "id-1", curator("null", `null`, plain), orders(nil), false},
		"Dubbo": {
			discovery.Dubbo(), "orders", "10.0.0.7:8080",
			`{"name":"orders","id":"10.0.0.7:8080","address":"10.0.0.7","port":8080,"sslPort":null,"payload":{"@class":"` + dubboClass + `","id":"10.0.0.7:8080","name":"orders","metadata":{"dubbo.endpoints":"[{\"port\":8080,\"protocol\":\"dubbo\"}]","dubbo.metadata.revision":"f1"}},"registrationTimeUTC":1795486358465,"serviceType":"DYNAMIC","uriSpec":null}`,
			orders(func(i *discovery.ServiceInstance) {
				i.ID, i.Node = "10.0.0.7:8080", "10.0.0.7:8080"
				i.Metadata = map[string]string{"dubbo.endpoints": `[{"port":8080,"protocol":"dubbo"}]`, "dubbo.metadata.revision": "f1"}
			}), true,
		},
		"dubbo-go": {
			discovery.Dubbo(), "orders", "10.0.0.7:8080",
			`{"name":"orders","id":"10.0.0.7:8080","address":"10.0.0.7","port":8080,"payload":{"@class":"` + dubboClass + `","id":"10.0.0.7:8080","metadata":{"dubbo.metadata.revision":"f1"},"name":"orders"},"tag":"gray"}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 8080)(i)
				i.ID, i.Node, i.Metadata = "10.0.0.7:8080", "10.0.0.7:8080", map[string]string{"dubbo.metadata.revision": "f1"}
			}), false,
		},
		"kratos": {
			discovery.Kratos(), "orders", "id-1",
			`{"id":"id-1","name":"orders","version":"v2","metadata":{"zone":"a"},"endpoints":["grpc://10.0.0.7:9000?isSecure=false","http://10.0.0.7:8000?isSecure=false\u0026x=1"]}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 9000)(i)
				i.Version, i.Zone, i.Metadata = "v2", "a", map[string]string{"zone": "a"}
				i.Endpoints = []string{"grpc://10.0.0.7:9000?isSecure=false", "http://10.0.0.7:8000?isSecure=false&x=1"}
			}), true,
		},
		"kratos, secure, and nothing else": {
			discovery.Kratos(), "orders", "id-1", `{"id":"id-1","name":"orders","version":"","metadata":null,"endpoints":["unix:///x","grpc://[::1]:9000?isSecure=true"]}`,
			orders(func(i *discovery.ServiceInstance) {
				at("::1", 0)(i)
				i.TLSPort, i.Endpoints = 9000, []string{"unix:///x", "grpc://[::1]:9000?isSecure=true"}
			}), true,
		},
		"kitex": {
			discovery.Kitex(), "orders", "10.0.0.7:8888", `{"Weight":10,"Tags":{"zone":"a"}}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 8888)(i)
				i.ID, i.Node, i.Weight, i.Zone, i.Metadata = "10.0.0.7:8888", "10.0.0.7:8888", 10, "a", map[string]string{"zone": "a"}
			}), true,
		},
		"kitex, nothing": {
			discovery.Kitex(), "orders", "[::1]:8888", `{"Weight":0,"Tags":null}`,
			orders(func(i *discovery.ServiceInstance) { at("::1", 8888)(i); i.ID, i.Node = "[::1]:8888", "[::1]:8888" }), true,
		},
		"go-kit": {
			discovery.GoKit(), "orders", "_c_0123456789abcdef0123456789abcdef-0000000012", "10.0.0.7:8080",
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 8080)(i)
				i.ID, i.Node = "_c_0123456789abcdef0123456789abcdef-", "_c_0123456789abcdef0123456789abcdef-0000000012"
			}), true,
		},
		"go-kit, a URL": {
			discovery.GoKit(), "orders", "x0000000012", "http://orders.example:8080/v1",
			orders(func(i *discovery.ServiceInstance) {
				at("orders.example", 8080)(i)
				i.ID, i.Node, i.Endpoints = "x", "x0000000012", []string{"http://orders.example:8080/v1"}
			}), true,
		},
		"serverset": {
			discovery.Serverset(), "orders", "member_0000000003",
			`{"serviceEndpoint":{"host":"10.0.0.7","port":9100},"additionalEndpoints":{"http-admin":{"host":"10.0.0.7","port":9101}},"status":"ALIVE","shard":3}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 9100)(i)
				i.ID, i.Node, i.Metadata = "0000000003", "member_0000000003", map[string]string{"shard": "3"}
				i.Endpoints = []string{"http-admin=10.0.0.7:9101"}
			}), true,
		},
		"serverset, dead": {
			discovery.Serverset(), "orders", "member_a", `{"serviceEndpoint":{"host":"10.0.0.7","port":9100},"additionalEndpoints":{},"status":"DEAD"}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 9100)(i)
				i.ID, i.Node, i.Disabled = "a", "member_a", true
			}), true,
		},
		"serverset, starting": {
			discovery.Serverset(), "orders", "member_a", `{"status":"STARTING","serviceEndpoint":{"host":"10.0.0.7","port":9100},"metadata":{"a":"b"}}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 9100)(i)
				i.ID, i.Node, i.Disabled = "a", "member_a", true
			}), false,
		},
		"nerve": {
			discovery.Nerve(), "orders", "n1", `{"host":"10.0.0.7","port":9100,"name":"n1"}`,
			orders(func(i *discovery.ServiceInstance) { at("10.0.0.7", 9100)(i); i.ID, i.Node = "n1", "n1" }), true,
		},
		"nerve, all": {
			discovery.Nerve(), "orders", "n1_0000000004", `{"host":"10.0.0.7","port":9100,"name":"n1","weight":2,"haproxy_server_options":"backup","labels":{"zone":"a"}}`,
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 9100)(i)
				i.ID, i.Node, i.Weight, i.Zone, i.Metadata = "n1", "n1_0000000004", 2, "a", map[string]string{"zone": "a"}
			}), false,
		},
		"host and port": {
			discovery.HostPort(), "orders", "10.0.0.7:8080", "10.0.0.7:8080",
			orders(func(i *discovery.ServiceInstance) {
				at("10.0.0.7", 8080)(i)
				i.ID, i.Node = "10.0.0.7:8080", "10.0.0.7:8080"
			}), true,
		},
	}
}

// TestTexts reads the texts of the programs that own the layouts, and writes them again: what
// was read is written byte for byte as it was, whatever else it has. What is written for the
// first time is what those programs write.
func TestTexts(t *testing.T) {
	t.Parallel()
	for name, tt := range texts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.codec.Decode(tt.service, tt.node, []byte(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Raw) != tt.data {
				t.Errorf("Raw is %q", got.Raw)
			}
			read := got.Clone()
			read.Raw = nil
			if !reflect.DeepEqual(read, tt.is) {
				t.Errorf("read\n%#v\nwant\n%#v", read, tt.is)
			}
			again, err := tt.codec.Encode(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(again.Data) != strings.ReplaceAll(tt.data, `\u0069d`, `id`) {
				t.Errorf("written again\n%s\nwas\n%s", again.Data, tt.data)
			}
			if !tt.fresh {
				return
			}
			is := tt.is.Clone()
			is.Node = ""
			if tt.codec.Name() == "Serverset" && is.ID == "0000000003" {
				is.ID = ""
			}
			first, err := tt.codec.Encode(&is)
			if err != nil {
				t.Fatal(err)
			}
			if string(first.Data) != tt.data {
				t.Errorf("written\n%s\nwant\n%s", first.Data, tt.data)
			}
			node := first.Node
			if first.Sequential {
				node += tt.node[len(tt.node)-10:]
			}
			if node != tt.node {
				t.Errorf("the node is %q, want %q", node, tt.node)
			}
		})
	}
}

// TestUnreadable: what the registries' own readers stumble over is an error that says why.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		codec      discovery.Codec
		node, data string
		says       string
	}{
		"empty":              {discovery.Curator(), "a", ``, "no data"},
		"no JSON":            {discovery.Curator(), "a", `hello`, "no JSON"},
		"two documents":      {discovery.Curator(), "a", `{} {}`, "no JSON"},
		"no object":          {discovery.Curator(), "a", `[1]`, "no JSON object"},
		"null":               {discovery.Curator(), "a", ` null`, "no JSON object"},
		"lower case":         {discovery.Curator(), "a", `{"serviceType":"dynamic"}`, `serviceType: "dynamic" is no type`},
		"a port":             {discovery.Curator(), "a", `{"port":70000}`, "port: 70000 is no port"},
		"a text for a port":  {discovery.Curator(), "a", `{"port":"http"}`, `port: "http" is no whole number`},
		"an object":          {discovery.Curator(), "a", `{"address":{}}`, "address: {} is no text"},
		"enabled":            {discovery.Curator(), "a", `{"enabled":"no"}`, "neither true nor false"},
		"several":            {discovery.Curator(), "a", `{"name":1,"sslPort":-1,"registrationTimeUTC":1.5}`, "sslPort: -1 is no port"},
		"an object as text":  {discovery.CuratorString(), "a", `{"payload":{}}`, "payload: {} is no text"},
		"a text as map":      {discovery.CuratorMap(), "a", `{"payload":"x"}`, `payload: "x" is no map`},
		"another class":      {discovery.CuratorJSON[pay]("Pay"), "a", `{"payload":{"weight":"x"}}`, "payload: json: cannot unmarshal"},
		"Spring, a list":     {discovery.SpringCloud(), "a", `{"payload":[1]}`, "payload: [1] is no object"},
		"Spring, metadata":   {discovery.SpringCloud(), "a", `{"payload":{"metadata":[1]}}`, "payload: metadata: [1] is no object"},
		"kratos, nowhere":    {discovery.Kratos(), "a", `{"endpoints":[]}`, "no endpoint with a host and a port"},
		"kratos, a text":     {discovery.Kratos(), "a", `{"endpoints":"x"}`, `endpoints: "x" is no list`},
		"kitex, the name":    {discovery.Kitex(), "a", `{}`, `name of the node: "a" is no host:port`},
		"go-kit, a name":     {discovery.GoKit(), "a", `b`, `"b" is no host:port`},
		"a port too large":   {discovery.HostPort(), "a", `b:65536`, `"65536" is no port`},
		"serverset, name":    {discovery.Serverset(), "a", `{}`, `does not begin with "member_"`},
		"serverset, nowhere": {discovery.Serverset(), "member_1", `{}`, "serviceEndpoint: there is none"},
		"serverset, more":    {discovery.Serverset(), "member_1", `{"serviceEndpoint":{},"additionalEndpoints":{"a":1}}`, "additionalEndpoints: a: 1 is no object"},
		"nerve, no object":   {discovery.Nerve(), "a", `{"labels":[]}`, "labels: [] is no object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.codec.Decode("orders", tt.node, []byte(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.says) || got != nil {
				t.Errorf("%v, error %v, want one that says %q", got, err, tt.says)
			}
		})
	}
}

// TestNotCarried: what a layout has no place for is refused, and never dropped.
func TestNotCarried(t *testing.T) {
	t.Parallel()
	set := map[string]func(*discovery.ServiceInstance){
		"TLSPort":                func(i *discovery.ServiceInstance) { i.TLSPort = 8443 },
		"Endpoints":              func(i *discovery.ServiceInstance) { i.Endpoints = []string{"http://10.0.0.7:8080"} },
		"Metadata":               func(i *discovery.ServiceInstance) { i.Metadata = map[string]string{"a": "b"} },
		"Weight":                 func(i *discovery.ServiceInstance) { i.Weight = 3 },
		"Zone":                   func(i *discovery.ServiceInstance) { i.Zone = "a" },
		"Version":                func(i *discovery.ServiceInstance) { i.Version = "1" },
		"Disabled":               func(i *discovery.ServiceInstance) { i.Disabled = true },
		"Type DynamicSequential": func(i *discovery.ServiceInstance) { i.Type = discovery.DynamicSequential },
		"URISpec":                func(i *discovery.ServiceInstance) { i.URISpec = "x" },
		"Payload":                func(i *discovery.ServiceInstance) { i.Payload = "x" },
	}
	const inMetadata = "Metadata Weight Zone Version "
	for _, tt := range []struct {
		codec   discovery.Codec
		carries string
	}{
		{discovery.Curator(), "TLSPort Disabled Type DynamicSequential URISpec"},
		{discovery.CuratorString(), "TLSPort Disabled Type DynamicSequential URISpec Payload"},
		{discovery.CuratorJSON[string](""), "TLSPort Disabled Type DynamicSequential URISpec Payload"},
		{discovery.CuratorMap(), inMetadata + "TLSPort Disabled Type DynamicSequential URISpec"},
		{discovery.SpringCloud(), inMetadata + "TLSPort Disabled Type DynamicSequential URISpec"},
		{discovery.Dubbo(), inMetadata + "TLSPort URISpec"},
		{discovery.Kratos(), inMetadata + "TLSPort Endpoints"},
		{discovery.Kitex(), inMetadata},
		{discovery.GoKit(), "TLSPort Endpoints Type DynamicSequential"},
		{discovery.Serverset(), "Endpoints Metadata Disabled"},
		{discovery.Nerve(), inMetadata},
		{discovery.HostPort(), "Type DynamicSequential"},
	} {
		for field, f := range set {
			i := discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 8080}
			f(&i)
			_, err := tt.codec.Encode(&i)
			refused := errors.Is(err, discovery.ErrNotCarried) && strings.Contains(err.Error(), "no place for "+field)
			if refused == strings.Contains(tt.carries, field) {
				t.Errorf("%s with %s: error %v", tt.codec.Name(), field, err)
			}
		}
	}
}

// TestEdited: a field that is changed is written in its place. What the codec does not know stays,
// also within a payload; what it knows and the instance has no more goes.
func TestEdited(t *testing.T) {
	t.Parallel()
	type small struct {
		A string `json:"a,omitempty"`
		B int    `json:"b,omitempty"`
	}
	for name, tt := range map[string]struct {
		codec       discovery.Codec
		node        string
		before      string
		edit        func(*discovery.ServiceInstance)
		after       string
		thenEnabled string
	}{
		"Java's Spring, out and in": {
			discovery.SpringCloud(), "id-1",
			`{"name":"orders","id":"id-1","address":"a","port":1,"sslPort":null,"payload":{"@class":"` + springClass + `","id":"application-1","name":"orders","metadata":{"zone":"a","instance_status":"UP"},"later":1},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null,"new":{"x":1}}`,
			func(i *discovery.ServiceInstance) { i.Disabled = true },
			`{"name":"orders","id":"id-1","address":"a","port":1,"sslPort":null,"payload":{"@class":"` + springClass + `","id":"application-1","name":"orders","metadata":{"zone":"a","instance_status":"OUT_OF_SERVICE"},"later":1},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null,"new":{"x":1}}`,
			`{"name":"orders","id":"id-1","address":"a","port":1,"sslPort":null,"payload":{"@class":"` + springClass + `","id":"application-1","name":"orders","metadata":{"zone":"a","instance_status":"UP"},"later":1},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null,"new":{"x":1}}`,
		},
		"Java's Curator, out and in": {
			discovery.Curator(), "id-1",
			`{"name":"orders","id":"id-1","address":"a","port":1,"sslPort":null,"payload":{"@class":"X","a":1},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null}`,
			func(i *discovery.ServiceInstance) { i.Disabled = true },
			`{"name":"orders","id":"id-1","address":"a","port":1,"sslPort":null,"payload":{"@class":"X","a":1},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null,"enabled":false}`,
			`{"name":"orders","id":"id-1","address":"a","port":1,"sslPort":null,"payload":{"@class":"X","a":1},"registrationTimeUTC":1,"serviceType":"DYNAMIC","uriSpec":null,"enabled":true}`,
		},
		"a payload": {
			discovery.CuratorJSON[small]("X"), "id-1",
			`{"name":"orders","id":"id-1","address":"a","port":1,"payload":{"b":1,"later":2,"@class":"Y","a":"x"}}`,
			func(i *discovery.ServiceInstance) { i.Payload = small{A: "z"} },
			`{"name":"orders","id":"id-1","address":"a","port":1,"payload":{"later":2,"@class":"Y","a":"z"}}`, "",
		},
		"a map": {
			discovery.CuratorMap(), "id-1",
			`{"name":"orders","id":"id-1","address":"a","port":1,"payload":{"@class":"Y","a":"x","n":5,"deep":{"b":1},"weight":"007"}}`,
			func(i *discovery.ServiceInstance) {
				delete(i.Metadata, "a")
				i.Metadata["b"], i.Zone = "<", "z"
			},
			`{"name":"orders","id":"id-1","address":"a","port":1,"payload":{"@class":"Y","n":5,"deep":{"b":1},"weight":"007","b":"<","zone":"z"}}`, "",
		},
		"kratos": {
			discovery.Kratos(), "id-1",
			`{"later":1,"id":"id-1","name":"orders","endpoints":["grpc://a:1"]}`,
			func(i *discovery.ServiceInstance) {
				i.Version, i.Address, i.Port, i.Endpoints = "v2", "", 0, []string{"grpc://a:2"}
			},
			`{"later":1,"id":"id-1","name":"orders","endpoints":["grpc://a:2"],"version":"v2"}`, "",
		},
		"kitex": {
			discovery.Kitex(), "a:1", `{"Tags":{"a":"b"},"Weight":10,"x":1}`, func(i *discovery.ServiceInstance) { i.Weight, i.Metadata = 0, nil },
			`{"Tags":null,"Weight":0,"x":1}`, "",
		},
		"serverset": {
			discovery.Serverset(), "member_1", `{"status":"WARNING","x":1,"shard":4,"serviceEndpoint":{"host":"a","port":1},"additionalEndpoints":{"b":{"host":"a","port":2}}}`,
			func(i *discovery.ServiceInstance) { i.Metadata, i.Endpoints = nil, append(i.Endpoints, "a=a:3") },
			`{"status":"WARNING","x":1,"serviceEndpoint":{"host":"a","port":1},"additionalEndpoints":{"a":{"host":"a","port":3},"b":{"host":"a","port":2}}}`,
			`{"status":"ALIVE","x":1,"serviceEndpoint":{"host":"a","port":1},"additionalEndpoints":{"a":{"host":"a","port":3},"b":{"host":"a","port":2}}}`,
		},
		"nerve": {
			discovery.Nerve(), "n", `{"host":"a","x":1,"port":1,"labels":{"a":"b"},"weight":2}`, func(i *discovery.ServiceInstance) { i.Port, i.Weight, i.Metadata = 2, 0, nil },
			`{"host":"a","x":1,"port":2,"labels":null,"weight":0,"name":"n"}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write := func(data string, edit func(*discovery.ServiceInstance)) string {
				i, err := tt.codec.Decode("orders", tt.node, []byte(data))
				if err != nil {
					t.Fatal(err)
				}
				edit(i)
				now, err := tt.codec.Encode(i)
				if err != nil {
					t.Fatal(err)
				}
				return string(now.Data)
			}
			got := write(tt.before, tt.edit)
			if got != tt.after {
				t.Errorf("written\n%s\nwant\n%s", got, tt.after)
			}
			if tt.thenEnabled == "" {
				return
			}
			if got = write(got, func(i *discovery.ServiceInstance) { i.Disabled = false }); got != tt.thenEnabled {
				t.Errorf("enabled again\n%s\nwant\n%s", got, tt.thenEnabled)
			}
		})
	}
}

// FuzzDecode: no data makes a codec panic. What it can read it can write, and what it has written it
// reads as the same instance.
func FuzzDecode(f *testing.F) {
	for _, tt := range texts() {
		f.Add(tt.node, []byte(tt.data))
	}
	f.Add("member_1", []byte(`{"serviceEndpoint":{"host":"a","port":1},"shard":"4"}`))
	f.Add("id-1", []byte(`{"uriSpec":{"parts":[{"value":"a{b","variable":false},{"value":" x ","variable":true},{"value":"{","variable":true}]}}`))
	all := []discovery.Codec{
		discovery.Curator(), discovery.CuratorString(), discovery.CuratorMap(), discovery.CuratorJSON[map[string]any]("java.util.HashMap"),
		discovery.CuratorJSON[[]int]("java.util.ArrayList"), discovery.CuratorJSON[pay]("Pay"), discovery.SpringCloud(), discovery.Dubbo(), discovery.Kratos(),
		discovery.Kitex(), discovery.GoKit(), discovery.Serverset(), discovery.Nerve(), discovery.HostPort(),
	}
	f.Fuzz(func(t *testing.T, node string, data []byte) {
		if node == "" || !utf8.ValidString(node) {
			return // no server has such a name
		}
		for _, codec := range all {
			i, err := codec.Decode("orders", node, data)
			if err != nil || i.Address == "" || i.Port == 0 && i.TLSPort == 0 {
				continue // not written again
			}
			now, err := codec.Encode(i)
			if err != nil {
				// An ID that is no name of this layout is refused, and so is what the
				// layout has read and would not write.
				if !errors.Is(err, discovery.ErrNotCarried) {
					t.Fatalf("%s: %q is read and not written: %v", codec.Name(), data, err)
				}
				continue
			}
			again, err := codec.Decode("orders", node, now.Data)
			if err != nil {
				t.Fatalf("%s: %q is written as %q: %v", codec.Name(), data, now.Data, err)
			}
			was, is := i.Clone(), again.Clone()
			was.Raw, is.Raw = nil, nil
			if !reflect.DeepEqual(was, is) {
				t.Fatalf("%s: %q is written as %q and read as\n%#v\nwant\n%#v", codec.Name(), data, now.Data, is, was)
			}
		}
	})
}

// TestURI are the templates of Curator.
func TestURI(t *testing.T) {
	t.Parallel()
	i := orders(func(i *discovery.ServiceInstance) { i.TLSPort = 8443 })
	plain := orders(nil)
	v6 := orders(func(i *discovery.ServiceInstance) { i.Address = "::1" })
	for spec, want := range map[string]string{
		"":                            "https://10.0.0.7:8443",
		"{scheme}://{address}:{port}": "https://10.0.0.7:8080",
		"{ scheme }://{name}-{id}.{address}:{ssl-port}/{unknown}{[}x{]}?{registration-time-utc}#{service-type}": "https://orders-id-1.10.0.0.7:8443/{x}?1795486358465#dynamic",
		"no variable": "no variable",
	} {
		i.URISpec = spec
		if got, err := i.URI(); err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", spec, got, err, want)
		}
	}
	for _, spec := range []string{"{", "}", "a{b", "a}b", "{a{b}}", "{a}}"} {
		i.URISpec = spec
		if got, err := i.URI(); err == nil || got != "" {
			t.Errorf("%q gives %q and no error", spec, got)
		}
	}
	if got, err := plain.URI(); err != nil || got != "http://10.0.0.7:8080" {
		t.Errorf("without a template: %q, %v", got, err)
	}
	if got, err := v6.URI(); err != nil || got != "http://[::1]:8080" {
		t.Errorf("an IPv6 address: %q, %v", got, err)
	}
}
