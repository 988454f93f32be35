package promserver

import (
	"strings"
	"testing"
)

// A server is ready when its log has told so and has told the address, in any order.
func TestReady(t *testing.T) {
	t.Parallel()
	address := `{"msg":"Listening on","address":"127.0.0.1:4711"}` + "\n"
	serves := `{"msg":"Server is ready to receive web requests."}` + "\n"
	for log, want := range map[string]string{
		address + serves:          "127.0.0.1:4711",
		serves + address:          "127.0.0.1:4711",
		serves + address + serves: "127.0.0.1:4711",
		serves:                    "",
		address:                   "",
	} {
		s := &Server{done: make(chan struct{})}
		ready := make(chan string, 1)
		s.read(strings.NewReader(log), ready)
		close(ready)
		if got := <-ready; got != want {
			t.Errorf("the log %q gives the address %q, want %q", log, got, want)
		}
	}
}
