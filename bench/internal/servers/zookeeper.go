package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	zooKeeperJar      = "/usr/share/java/zookeeper.jar"
	loggerJar         = "/usr/share/java/slf4j-simple.jar"
	zooKeeperPackages = "libzookeeper-java libslf4j-java default-jre-headless"
	portsOfMember     = 3 // clients, followers, elections
)

// startZooKeeper starts Debian's ZooKeeper.
func (e *Ensemble) startZooKeeper(ctx context.Context, servers int, fsync bool, dir string) error {
	for _, jar := range []string{zooKeeperJar, loggerJar} {
		if _, err := os.Stat(jar); err != nil {
			return missing("ZooKeeper", err, zooKeeperPackages)
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return missing("Java", err, zooKeeperPackages)
	}
	free, err := ports(ctx, servers*portsOfMember)
	if err != nil {
		return err
	}
	force := map[bool]string{true: "yes", false: "no"}[fsync]
	for i := range servers {
		config, err := zooKeeperConfig(dir, i, servers, free)
		if err != nil {
			return err
		}
		err = e.run(dir, fmt.Sprintf("server%d", i), java, "-Xms512m", "-Xmx512m",
			"-Dzookeeper.forceSync="+force, "-Dzookeeper.admin.enableServer=false",
			"-Dzookeeper.4lw.commands.whitelist=*", "-Dzookeeper.extendedTypesEnabled=true",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
			"-cp", zooKeeperJar+":"+loggerJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
		if err != nil {
			return err
		}
		e.Addrs = append(e.Addrs, local(free[i]))
	}
	e.count = countZooKeeper
	for i, p := range e.processes {
		if err := p.await(ctx, func() error { return e.zooKeeperServes(ctx, e.Addrs[i]) }); err != nil {
			return err
		}
	}
	return e.leaderLast(func(addr string) (bool, error) {
		said, err := ask(ctx, addr, "srvr", "")
		return strings.Contains(said, "Mode: leader"), err
	})
}

// zooKeeperConfig writes the configuration of server i and returns its path.
func zooKeeperConfig(dir string, i, servers int, free []int) (string, error) {
	data := filepath.Join(dir, fmt.Sprintf("data%d", i))
	if err := os.MkdirAll(data, 0o700); err != nil {
		return "", err
	}
	lines := []string{
		"dataDir=" + data, fmt.Sprintf("clientPort=%d", free[i]), "clientPortAddress=127.0.0.1",
		"tickTime=2000", "initLimit=10", "syncLimit=5", "maxClientCnxns=0", "maxSessionTimeout=60000",
	}
	if servers > 1 {
		for n := range servers {
			lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", n+1, free[servers+n], free[2*servers+n]))
		}
		if err := os.WriteFile(filepath.Join(data, "myid"), fmt.Appendf(nil, "%d\n", i+1), 0o600); err != nil {
			return "", err
		}
	}
	config := filepath.Join(dir, fmt.Sprintf("zoo%d.cfg", i))
	return config, os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// zooKeeperServes returns an error unless the server takes requests.
func (e *Ensemble) zooKeeperServes(ctx context.Context, addr string) error {
	said, err := ask(ctx, addr, "srvr", "")
	if err != nil {
		return err
	}
	if !strings.Contains(said, "Mode: ") {
		return errors.New(strings.TrimSpace(said))
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(said, "Zookeeper version: "), "-")
	e.Version = "ZooKeeper " + version
	return nil
}

// countZooKeeper counts what clients sent. What is sent to them and is no answer is an
// event.
func countZooKeeper(ctx context.Context, addr string) (Counters, error) {
	said, err := ask(ctx, addr, "mntr", "")
	if err != nil {
		return Counters{}, err
	}
	received, err := field(said, "zk_packets_received\t")
	if err != nil {
		return Counters{}, err
	}
	sent, err := field(said, "zk_packets_sent\t")
	return Counters{Requests: received, Events: sent - received}, err
}
