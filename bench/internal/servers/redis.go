package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// startRedis starts Debian's Redis: servers that know nothing of each other, as redsync
// wants them.
func (e *Ensemble) startRedis(ctx context.Context, servers int, fsync bool, dir string) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return missing("Redis", err, "redis-server")
	}
	free, err := ports(ctx, servers)
	if err != nil {
		return err
	}
	policy := map[bool]string{true: "always", false: "no"}[fsync]
	for i := range servers {
		data := filepath.Join(dir, fmt.Sprintf("data%d", i))
		if err := os.MkdirAll(data, 0o700); err != nil {
			return err
		}
		err := e.run(dir, fmt.Sprintf("server%d", i), program, "--bind", "127.0.0.1", "--port", strconv.Itoa(free[i]),
			"--dir", data, "--save", "", "--appendonly", "yes", "--appendfsync", policy, "--loglevel", "warning")
		if err != nil {
			return err
		}
		e.Addrs = append(e.Addrs, local(free[i]))
	}
	e.count = countRedis
	for i, p := range e.processes {
		if err := p.await(ctx, func() error { return e.redisServes(ctx, e.Addrs[i]) }); err != nil {
			return err
		}
	}
	return nil
}

func (e *Ensemble) redisServes(ctx context.Context, addr string) error {
	said, err := ask(ctx, addr, "INFO server\r\n", "io_threads_active")
	if err != nil {
		return err
	}
	for line := range strings.Lines(said) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), "redis_version:"); ok {
			e.Version = "Redis " + version
		}
	}
	return nil
}

// countRedis counts commands, those of scripts too. There are no events.
func countRedis(ctx context.Context, addr string) (Counters, error) {
	said, err := ask(ctx, addr, "INFO stats\r\n", "instantaneous_ops_per_sec")
	if err != nil {
		return Counters{}, err
	}
	n, err := field(said, "total_commands_processed:")
	return Counters{Requests: n}, err
}
