package discovery_test

import (
	"bytes"
	"strconv"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/discovery"
)

// Nodes with absurd weights do not break the providers that read them.
func TestAbsurdWeights(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Nerve(), func(r *rig) {
		for _, node := range []string{"a", "b", "c"} {
			r.set(node, `{"host":"10.0.0.7","port":1,"name":"`+node+`","weight":9223372036854775807}`)
		}
		r.set("d", `{"host":"10.0.0.7","port":1,"name":"d","weight":-9223372036854775808}`)
		for _, strategy := range []discovery.Strategy{discovery.Random, discovery.LeastLoaded} {
			p, err := r.other.Provider("orders", discovery.WithStrategy(strategy))
			r.Check(err)
			r.Check(p.Start(r.Within(time.Minute)))
			picked := map[string]int{}
			for range 300 {
				call, err := p.Pick(r.Ctx)
				r.Check(err)
				picked[call.Instance.Node]++
				call.Done(nil)
			}
			for _, node := range []string{"a", "b", "c"} {
				if picked[node] == 0 {
					r.Errorf("strategy %d: %s was never picked: %v", strategy, node, picked)
				}
			}
			p.Close()
		}
	})
}

// withWeight are the codecs that carry a weight, with an instance for each.
func withWeight() map[discovery.Codec]discovery.ServiceInstance {
	plain := discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 80}
	kratos := plain
	kratos.Endpoints = []string{"grpc://10.0.0.7:80"}
	return map[discovery.Codec]discovery.ServiceInstance{
		discovery.CuratorMap(): plain, discovery.SpringCloud(): plain, discovery.Dubbo(): plain,
		discovery.Kratos(): kratos, discovery.Kitex(): plain, discovery.Nerve(): plain,
	}
}

// A node of another program may have a negative weight. It is read as none, and stays in the node
// when something else is changed there.
func TestNegativeWeightIsRead(t *testing.T) {
	t.Parallel()
	for codec, i := range withWeight() {
		i.Weight = 54321
		e, err := codec.Encode(&i)
		testrig.Check(t, err)
		for _, text := range []string{"-1", "-9223372036854775808"} {
			data := bytes.Replace(e.Data, []byte("54321"), []byte(text), 1)
			read, err := codec.Decode("orders", e.Node, data)
			testrig.Check(t, err)
			if read.Weight != 0 {
				t.Errorf("%s: a weight of %s is read as %d, want 0", codec.Name(), text, read.Weight)
			}
			read.Zone = "west"
			again, err := codec.Encode(read)
			testrig.Check(t, err)
			if !bytes.Contains(again.Data, []byte(text)) || !bytes.Contains(again.Data, []byte("west")) {
				t.Errorf("%s: the node with a weight of %s was\n%s and is\n%s", codec.Name(), text, data, again.Data)
			}
			read.Weight = 7
			again, err = codec.Encode(read)
			testrig.Check(t, err)
			if now, err := codec.Decode("orders", e.Node, again.Data); err != nil || now.Weight != 7 {
				t.Errorf("%s: a weight of 7 in place of %s is %+v, error %v", codec.Name(), text, now, err)
			}
		}
	}
}

// A weight that no int holds is the largest.
func TestLargeWeightIsRead(t *testing.T) {
	t.Parallel()
	read, err := discovery.Kitex().Decode("orders", "10.0.0.7:80", []byte(`{"Weight":9223372036854775807}`))
	testrig.Check(t, err)
	if read.Weight <= 0 {
		t.Errorf("the weight is %d", read.Weight)
	}
}

// strange is a codec of somebody else's, whose weights are negative.
type strange struct{ discovery.Codec }

func (s strange) Decode(service, node string, data []byte) (*discovery.ServiceInstance, error) {
	i, err := s.Codec.Decode(service, node, data)
	if err == nil {
		i.Weight = -3
	}
	return i, err
}

// No codec makes a directory hand out a negative weight, nor an edit of something else fail for it.
func TestNegativeWeightOfACodec(t *testing.T) {
	t.Parallel()
	bubble(t, strange{discovery.CuratorMap()}, func(r *rig) {
		r.register(at("10.0.0.7", 80))
		now := r.want(r.cache(), "a=10.0.0.7:80")
		if got := now.Instances[0].Weight; got != 0 {
			r.Errorf("the weight is %d, want 0", got)
		}
		r.Check(r.other.Edit(r.Within(time.Minute), "orders", "a", func(i *discovery.ServiceInstance) error {
			i.Zone = "west"
			return nil
		}))
	})
}

// An instance with a negative weight is refused with every codec, also with those that have no place
// for a weight, and nothing is written.
func TestNegativeWeightIsRefused(t *testing.T) {
	t.Parallel()
	codecs := []discovery.Codec{
		discovery.Curator(), discovery.CuratorString(), discovery.CuratorJSON[int](""), discovery.GoKit(),
		discovery.Serverset(), discovery.HostPort(),
	}
	for codec := range withWeight() {
		codecs = append(codecs, codec)
	}
	for _, codec := range codecs {
		t.Run(codec.Name(), func(t *testing.T) {
			t.Parallel()
			bubble(t, codec, func(r *rig) {
				want := func(err error, weight int) {
					r.Helper()
					testrig.WantErrText(r.T, err, "the weight "+strconv.Itoa(weight)+" is negative; leave it 0")
				}
				i := discovery.ServiceInstance{Service: "orders", Address: "10.0.0.7", Port: 80}
				for of, one := range withWeight() {
					if of.Name() == codec.Name() {
						i = one
					}
				}
				i.Weight = -1
				_, err := r.own.Register(r.Ctx, i)
				want(err, -1)
				r.WantNoChild(base + "/orders")
				i.Weight = 0
				g := r.register(i)
				before, _ := r.Srv.Node(g.Status().Path)
				worse := g.Instance()
				worse.Weight = -2
				want(g.Update(r.Ctx, worse), -2)
				_, node, _ := bytes.Cut([]byte(g.Status().Path), []byte("/orders/"))
				want(r.other.Edit(r.Ctx, "orders", string(node), func(i *discovery.ServiceInstance) error {
					i.Weight = -3
					return nil
				}), -3)
				if after, _ := r.Srv.Node(g.Status().Path); !bytes.Equal(after.Data, before.Data) {
					r.Errorf("the node was\n%s and is\n%s", before.Data, after.Data)
				}
				if got := g.Instance().Weight; got != 0 {
					r.Errorf("the registration has the weight %d", got)
				}
			})
		})
	}
}
