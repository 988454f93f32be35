package live_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/zktest"
)

// asProcess is set in the environment of the process that is scraped.
const asProcess = "DOCENT_OBSERVED_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) == "" {
		os.Exit(m.Run())
	}
	if err := observed(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// observed is a process that uses Docent and exports its metrics. It prints its address.
// A request to /play plays all scenes and answers what has happened in them. The process
// ends when its standard input ends.
func observed() error {
	srv, err := zktest.Start(zktest.WithTick(100 * time.Millisecond))
	if err != nil {
		return err
	}
	defer func() { _ = srv.Close() }()
	metrics := promdocent.New(promdocent.WithLockName(observe.Path))
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(metrics); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/play", func(w http.ResponseWriter, r *http.Request) {
		facts, err := scenes.Play(r.Context(), srv, metrics.Observer)
		if err == nil {
			err = json.NewEncoder(w).Encode(facts)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, l.Addr()); err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = web.Close()
	}()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// startObserved starts the process and returns its address.
func startObserved(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait() // the end of the test's context may have killed it first
	})
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the process printed no address: %v", err)
	}
	return strings.TrimSpace(address)
}

// get reads the answer to a GET into the value.
func get(t *testing.T, url string, answer any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", url, resp.Status, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		t.Fatalf("%s: %v in %s", url, err, body)
	}
}
