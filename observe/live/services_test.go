package live_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe/live/internal/promserver"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/zktest"
)

// serviceConfig is the configuration of docs/internals/discovery.md, for other servers.
func serviceConfig(t *testing.T, servers string) string {
	t.Helper()
	_, text, begun := strings.Cut(string(file(t, "../../docs/internals/discovery.md")), "```yaml\n")
	text, _, ended := strings.Cut(text, "```")
	if !begun || !ended || strings.Count(text, `"localhost:2181"`) != 2 {
		t.Fatalf("the page has no configuration of two kinds of services: %q", text)
	}
	return fmt.Sprintf("global: {scrape_interval: %v, scrape_timeout: %[1]v}\n", interval) + strings.ReplaceAll(text, "localhost:2181", servers)
}

// active are the labels instance of the targets that Prometheus has, by job, sorted.
func (p *prom) active() map[string][]string {
	p.Helper()
	var answer struct {
		Data struct {
			ActiveTargets []struct{ Labels map[string]string }
		}
	}
	if err := p.server.Get(p.Context(), "targets", url.Values{"state": {"active"}}, &answer); err != nil {
		p.Fatal(err)
	}
	all := map[string][]string{}
	for _, t := range answer.Data.ActiveTargets {
		all[t.Labels["job"]] = append(all[t.Labels["job"]], t.Labels["instance"])
	}
	for _, of := range all {
		slices.Sort(of)
	}
	return all
}

// Prometheus finds what registers in the layouts of Nerve and of server sets, scrapes it, and forgets
// it when it leaves. The configuration is that of the page.
func TestServicesAreScraped(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "orders_sold 4711\n")
	}))
	t.Cleanup(web.Close)
	host, text, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	srv := zktest.NewServer(t, zktest.WithListen("127.0.0.1:0"), zktest.WithExtendedTypes())
	c, err := client.Connect(t.Context(), srv.Addr(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	register := func(base string, codec discovery.Codec, i discovery.ServiceInstance) *discovery.Registration {
		t.Helper()
		d, err := discovery.New(c, base, codec)
		if err != nil {
			t.Fatal(err)
		}
		i.Service, i.Address, i.Port = "orders", host, port
		g, err := d.Register(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	server, err := promserver.Start(t.Context(), promserver.Config{Dir: t.TempDir(), Text: serviceConfig(t, srv.Addr())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log := server.Close(); t.Failed() {
			t.Log(log)
		}
	})
	p := &prom{t, server}
	address := web.Listener.Addr().String()
	nerve := register("/scrape", discovery.Nerve(), discovery.ServiceInstance{ID: "orders-1"})
	set := register("/sets", discovery.Serverset(), discovery.ServiceInstance{})
	off := register("/sets", discovery.Serverset(), discovery.ServiceInstance{ID: "off", Disabled: true})
	for job, instance := range map[string]string{"services": "orders-1", "sets": address} {
		p.await("a scrape of the job "+job, func() bool {
			got := p.query(fmt.Sprintf("orders_sold{job=%q, instance=%q}", job, instance))
			return len(got) == 1 && got[0].number(t) == 4711
		})
	}
	if got := p.active(); !slices.Equal(got["services"], []string{"orders-1"}) || !slices.Equal(got["sets"], []string{address}) {
		t.Errorf("the targets are %v", got)
	}
	if err := off.Close(); err != nil {
		t.Fatal(err)
	}
	if err := set.Disable(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.await("the end of the target that is disabled", func() bool { return len(p.active()["sets"]) == 0 })
	if err := nerve.Close(); err != nil {
		t.Fatal(err)
	}
	p.await("the end of the target that has left", func() bool { return len(p.active()["services"]) == 0 })
}
