package promserver_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docent-go/docent/observe/live/internal/promserver"
)

// A server is ready when its log has told so and has told the address, in any order. The
// log here is that of a script, which stands for Prometheus.
func TestReady(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data": {"result": ["found"]}}`))
	}))
	defer api.Close()
	serves := `echo '{"msg":"Server is ready to receive web requests."}' >&2` + "\n"
	address := `echo '{"msg":"Listening on","address":"` + api.Listener.Addr().String() + `"}' >&2` + "\n"
	for _, script := range []string{address + serves, serves + address} {
		if err := os.WriteFile(filepath.Join(bin, "prometheus"), []byte("#!/bin/sh\n"+script+"exec tail -f /dev/null\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := promserver.Start(t.Context(), promserver.Config{Dir: t.TempDir(), Interval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		if err := s.Query(t.Context(), "query", nil, &found); err != nil || len(found) != 1 {
			t.Errorf("the server answered %v, error %v; its log is\n%s", found, err, script)
		}
		s.Close()
	}
}
