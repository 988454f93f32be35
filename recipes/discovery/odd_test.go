package discovery_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/recipes/discovery"
)

// An address with a zone that is no name of an interface is none.
func TestOddZones(t *testing.T) {
	t.Parallel()
	bubble(t, discovery.Curator(), func(r *rig) {
		for node, address := range map[string]string{
			"a": "fe80::1%eth0", "b": "fe80::1%a/b", "c": "fe80::1%a b", "d": `fe80::1%]\u000a`, "e": "1.2.3.4:5", "f": "::1@x",
			"g": "h\u009bx", "i": "h\u2028x", "j": "h\u00a0x",
		} {
			r.set(node, `{"address":"`+address+`","port":80}`)
		}
		now, err := r.other.Instances(r.Within(time.Minute), "orders")
		r.Check(err)
		if len(now.Instances) != 1 || now.Instances[0].Node != "a" {
			r.Errorf("%s", text(now))
		}
	})
}

// A nil option is no option, as for a directory.
func TestNilOptions(t *testing.T) {
	t.Parallel()
	inMarket(t, func(m *market) {
		_, err := m.d.Cache("orders", nil)
		m.Check(err)
		_, err = m.d.Provider("orders", nil)
		m.Check(err)
	})
}
