// Package promserver runs Debian's Prometheus server beside a test or a program.
package promserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// startLimit is how long a server may take until it is ready.
const startLimit = 20 * time.Second

// Config says what a server does.
type Config struct {
	Dir      string            // an empty directory for the server's data
	Job      string            // the label job
	Targets  map[string]string // address of each target by its label instance; without one that is the address
	Interval time.Duration     // between two scrapes, and two evaluations of the rules
	Rules    string            // an absolute path of a file of rules, or nothing
	Text     string            // a configuration in the place of all the others but Dir, or nothing
}

// text is the configuration in Prometheus' own format. JSON is YAML too.
func (c Config) text() ([]byte, error) {
	if c.Text != "" {
		return []byte(c.Text), nil
	}
	var targets []any
	for instance, address := range c.Targets {
		target := map[string]any{"targets": []string{address}}
		if instance != "" {
			target["labels"] = map[string]string{"instance": instance}
		}
		targets = append(targets, target)
	}
	all := map[string]any{
		"global": map[string]string{
			"scrape_interval": c.Interval.String(), "scrape_timeout": c.Interval.String(), "evaluation_interval": c.Interval.String(),
		},
		"scrape_configs": []any{map[string]any{"job_name": c.Job, "static_configs": targets}},
	}
	if c.Rules != "" {
		all["rule_files"] = []string{c.Rules}
	}
	return json.Marshal(all)
}

// Server is a Prometheus server, a process of its own. Its methods are safe for
// concurrent use.
type Server struct {
	address string
	cmd     *exec.Cmd
	log     strings.Builder // written until done is closed
	done    chan struct{}
}

// Start starts a server on a free port and waits until it is ready. The end of ctx kills
// the server. The caller must call Close. After an error no process is left.
func Start(ctx context.Context, c Config) (*Server, error) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		return nil, fmt.Errorf("%w: install Debian's package prometheus", err)
	}
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.Dir, "prometheus.yml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(c.Dir, "data"), //nolint:gosec // the caller's own directory
		"--web.listen-address=127.0.0.1:0", "--log.format=json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{cmd: cmd, done: make(chan struct{})}
	ready := make(chan string, 1)
	go s.read(stderr, ready)
	select {
	case s.address = <-ready:
		return s, nil
	case <-s.done:
	case <-time.After(startLimit):
	}
	return nil, fmt.Errorf("the Prometheus server is not ready; its log is:\n%s", s.Close())
}

// read reads the log of the server to its end. The address may come before or after the
// line that says that the server is ready.
func (s *Server) read(log io.Reader, ready chan<- string) {
	defer close(s.done)
	listening := regexp.MustCompile(`"address":"(127\.0\.0\.1:[1-9][0-9]*)"`)
	var address string
	var serves, told bool
	for lines := bufio.NewScanner(log); lines.Scan(); {
		line := lines.Text()
		s.log.WriteString(line + "\n")
		if found := listening.FindStringSubmatch(line); found != nil {
			address = found[1]
		}
		serves = serves || strings.Contains(line, "Server is ready to receive web requests")
		if serves && address != "" && !told {
			told = true
			ready <- address
		}
	}
}

// Close ends the server, waits for its end, and returns its log.
func (s *Server) Close() (log string) {
	_ = s.cmd.Process.Signal(os.Interrupt)
	select {
	case <-s.done:
	case <-time.After(startLimit):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	_ = s.cmd.Wait() // an interrupt is no success
	return s.log.String()
}

// Query asks an API of the server, such as "query", and reads the results into result,
// a pointer to a slice.
func (s *Server) Query(ctx context.Context, api string, values url.Values, result any) error {
	answer := struct{ Data struct{ Result any } }{}
	answer.Data.Result = result
	return s.Get(ctx, api, values, &answer)
}

// Get reads the answer of an API of the server into answer.
func (s *Server) Get(ctx context.Context, api string, values url.Values, answer any) (err error) {
	address := "http://" + s.address + "/api/v1/" + api + "?" + values.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", address, resp.Status, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: %w in %s", address, err, body)
	}
	return nil
}
