package zkcontainer_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// What cannot work is refused before anything is made.
func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	users := func(name, password string) zkcontainer.Option {
		return zkcontainer.WithSASLDigest(map[string]string{name: password})
	}
	for _, tt := range []struct {
		name string
		opt  zkcontainer.Option
		want string
	}{
		{"host in brackets", zkcontainer.WithHost("[::1]"), "not a name or address"},
		{"host with a port", zkcontainer.WithHost("127.0.0.1:2181"), "not a name or address"},
		{"port for TLS", zkcontainer.WithProperty("secureClientPort", "2282"), "must stay 2281"},
		{"no srvr", zkcontainer.WithProperty("4lw.commands.whitelist", "ruok, mntr srvr"), "srvr"},
		{"joins the next line", zkcontainer.WithProperty("a", `b\`), "one line"},
		{"two keys", zkcontainer.WithSystemProperty("a=b", "c"), "one word"},
		{"control character in a password", users("a", "b\x01"), "JAAS"},
		{"tab in a password", users("a", "b\t"), "JAAS"},
	} {
		_, err := zkcontainer.Requests(1, tt.opt)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, opt := range []zkcontainer.Option{
		zkcontainer.WithHost("::1"), zkcontainer.WithProperty("4lw.commands.whitelist", "ruok, srvr"),
		zkcontainer.WithProperty("4lw.commands.whitelist", "*"), zkcontainer.WithProperty("a", `b\\`),
		zkcontainer.WithProperty("secureClientPort", "2281"), users("álice", "wönder=land"),
	} {
		if _, err := zkcontainer.Requests(1, opt); err != nil {
			t.Error(err)
		}
	}
}
