package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// startEtcd starts Debian's etcd.
func (e *Ensemble) startEtcd(ctx context.Context, servers int, fsync bool, dir string) error {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return missing("etcd", err, "etcd-server")
	}
	free, err := ports(ctx, 2*servers)
	if err != nil {
		return err
	}
	var cluster []string
	for i := range servers {
		cluster = append(cluster, fmt.Sprintf("n%d=http://%s", i, local(free[servers+i])))
	}
	for i := range servers {
		name := fmt.Sprintf("n%d", i)
		peer := "http://" + local(free[servers+i])
		args := []string{
			"--name", name, "--data-dir", filepath.Join(dir, name),
			"--listen-client-urls", "http://" + local(free[i]), "--advertise-client-urls", "http://" + local(free[i]),
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "error", "--logger", "zap",
		}
		if !fsync {
			args = append(args, "--unsafe-no-fsync")
		}
		if err := e.run(dir, name, program, args...); err != nil {
			return err
		}
		e.Addrs = append(e.Addrs, local(free[i]))
	}
	e.count = countEtcd
	for i, p := range e.processes {
		if err := p.await(ctx, func() error { return e.etcdServes(ctx, e.Addrs[i]) }); err != nil {
			return err
		}
	}
	return e.leaderLast(func(addr string) (bool, error) {
		said, err := get(ctx, "http://"+addr+"/metrics")
		return strings.Contains(said, "\netcd_server_is_leader 1\n"), err
	})
}

func (e *Ensemble) etcdServes(ctx context.Context, addr string) error {
	said, err := get(ctx, "http://"+addr+"/health")
	if err != nil {
		return err
	}
	if !strings.Contains(said, `"true"`) {
		return fmt.Errorf("health: %s", said)
	}
	said, err = get(ctx, "http://"+addr+"/version")
	_, version, _ := strings.Cut(said, `"etcdserver":"`)
	version, _, _ = strings.Cut(version, `"`)
	e.Version = "etcd " + version
	return err
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	return string(said), err
}

// countEtcd counts the messages that clients sent. What a watch was sent is an answer to
// one of its own messages or an event.
func countEtcd(ctx context.Context, addr string) (Counters, error) {
	said, err := get(ctx, "http://"+addr+"/metrics")
	if err != nil {
		return Counters{}, err
	}
	return etcdCounters(said)
}

func etcdCounters(metrics string) (Counters, error) {
	var c Counters
	for line := range strings.Lines(metrics) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		received, sent := strings.HasPrefix(name, "grpc_server_msg_received_total{"), strings.HasPrefix(name, "grpc_server_msg_sent_total{")
		if !ok || !received && !sent {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return c, err
		}
		watch := strings.Contains(name, `grpc_method="Watch"`)
		switch {
		case received && watch:
			c.Requests += n
			c.Events -= n
		case received:
			c.Requests += n
		case watch:
			c.Events += n
		}
	}
	return c, nil
}
