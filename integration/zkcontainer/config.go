package zkcontainer

import (
	"bytes"
	_ "embed" // start.sh
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/testcontainers/testcontainers-go"
)

const (
	clientPort = 2181
	securePort = 2281

	configDir = "/zkcontainer/"
	holdFile  = configDir + "hold"

	keyFile   = "/etc/zookeeper/tls/server.pem"
	trustFile = "/etc/zookeeper/tls/ca.pem"
)

//go:embed start.sh
var startScript []byte

// zooCfg is the text of zoo.cfg. A single server is standalone: no server lines.
func (s *settings) zooCfg(addresses []string) []byte {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.properties)) {
		fmt.Fprintf(&b, "%s=%s\n", k, s.properties[k])
	}
	if len(addresses) > 1 {
		for i, a := range addresses {
			fmt.Fprintf(&b, "server.%d=%s:2888:3888\n", i+1, a)
		}
	}
	return []byte(b.String())
}

// jvmFlags are the flags of the server's virtual machine: small and quick to start,
// since tests start many and each lives for seconds.
func (s *settings) jvmFlags() string {
	flags := []string{
		fmt.Sprintf("-Xmx%dm", s.heapMiB),
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
	}
	for _, k := range slices.Sorted(maps.Keys(s.system)) {
		flags = append(flags, "-D"+k+"="+s.system[k])
	}
	return strings.Join(flags, " ")
}

// files are those of server id.
func (s *settings) files(id int, addresses []string) []testcontainers.ContainerFile {
	file := func(content []byte, path string) testcontainers.ContainerFile {
		return testcontainers.ContainerFile{Reader: bytes.NewReader(content), ContainerFilePath: path, FileMode: 0o644}
	}
	all := []testcontainers.ContainerFile{
		file(startScript, configDir+"start.sh"),
		file(s.zooCfg(addresses), "/conf/zoo.cfg"),
		file([]byte(strconv.Itoa(id)), path.Join(s.properties["dataDir"], "myid")),
	}
	if len(s.users) > 0 {
		all = append(all, file(s.jaas(), jaasFile))
	}
	if s.keys != nil {
		keys := s.keys(id)
		all = append(all, file(keys.Server, keyFile), file(keys.Trusted, trustFile))
	}
	return all
}

// ports are the ports for clients inside a container.
func (s *settings) ports() []int {
	if s.keys != nil {
		return []int{clientPort, securePort}
	}
	return []int{clientPort}
}
