package zkcontainer_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/docent-go/docent/integration/zkcontainer"
)

// tree and settings make of an image of Debian's packages one that is laid out as the official
// one: the user, the directories, the start by zkServer.sh, volumes, variables and the entry
// point. That fails: it must not be used, because it would make a zoo.cfg of the variables.
const tree = `set -e
userdel zookeeper
groupadd -r zookeeper --gid=1000
useradd -r -g zookeeper --uid=1000 zookeeper
mkdir -p /data /datalog /conf /logs /dist/bin /dist/lib
cp /usr/share/zookeeper/bin/zkServer.sh /usr/share/zookeeper/bin/zkCli.sh /dist/bin/
mv /usr/share/java/zookeeper.jar /dist/lib/
ln -s /usr/share/java/*.jar /dist/lib/
cat >/dist/bin/zkEnv.sh <<'END'
JAVA=java
ZOOCFG="$ZOOCFGDIR/zoo.cfg"
CLASSPATH="$ZOOCFGDIR:/dist/lib/zookeeper.jar:/dist/lib/slf4j-simple.jar:/dist/lib/netty-codec.jar"
export SERVER_JVMFLAGS="-Xmx1000m $SERVER_JVMFLAGS" CLIENT_JVMFLAGS="-Xmx256m $CLIENT_JVMFLAGS"
END
cat >/docker-entrypoint.sh <<'END'
#!/bin/bash
echo the entry point was used
exit 3
END
chmod +x /docker-entrypoint.sh
chown -R zookeeper:zookeeper /data /datalog /conf /logs /dist
`

func settings() []string {
	return []string{
		"ENV ZOO_CONF_DIR=/conf ZOO_DATA_DIR=/data ZOO_DATA_LOG_DIR=/datalog ZOO_LOG_DIR=/logs ZOO_TICK_TIME=2000" +
			" ZOO_INIT_LIMIT=5 ZOO_SYNC_LIMIT=2 ZOO_AUTOPURGE_PURGEINTERVAL=0 ZOO_AUTOPURGE_SNAPRETAINCOUNT=3" +
			" ZOO_MAX_CLIENT_CNXNS=60 ZOO_STANDALONE_ENABLED=true ZOO_ADMINSERVER_ENABLED=true" +
			" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/dist/bin ZOOCFGDIR=/conf",
		"WORKDIR /dist",
		`VOLUME ["/data", "/datalog", "/logs"]`,
		"EXPOSE 2181 2888 3888 8080",
		`ENTRYPOINT ["/docker-entrypoint.sh"]`,
		`CMD ["zkServer.sh", "start-foreground"]`,
	}
}

// likeOfficial makes the image and removes it at the end of the test.
func likeOfficial(ctx context.Context, t *testing.T) string {
	t.Helper()
	const tag = "docent-zkcontainer-test/official:like"
	c, err := testcontainers.Run(ctx, image(), testcontainers.WithEntrypoint("/bin/bash", "-c", tree),
		testcontainers.WithWaitStrategy(wait.ForExit()))
	testcontainers.CleanupContainer(t, c)
	check(t, err)
	if state := must(c.State(ctx))(t); state.ExitCode != 0 {
		t.Fatalf("the layout ended with %d", state.ExitCode)
	}
	docker := must(client.New(client.FromEnv))(t)
	t.Cleanup(func() { _ = docker.Close() })
	must(docker.ContainerCommit(ctx, c.GetContainerID(), client.ContainerCommitOptions{Reference: tag, Changes: settings()}))(t)
	t.Cleanup(func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		must(docker.ImageRemove(bounded, tag, client.ImageRemoveOptions{PruneChildren: true}))(t)
	})
	return tag
}

// The options fit an image that is laid out as the official one: its entry point and its
// variables have no effect, its own zkServer.sh starts the server, and its volumes go.
func TestOfficialLayout(t *testing.T) {
	t.Parallel()
	ctx := limited(t, 4*time.Minute)
	img := image()
	if strings.HasPrefix(img, "docent/") {
		img = likeOfficial(ctx, t)
	}
	e, err := zkcontainer.RunEnsemble(ctx, img, 2, zkcontainer.WithHost("127.0.0.1"),
		testcontainers.WithEnv(map[string]string{"ZOO_TICK_TIME": "3000", "ZOO_MAX_CLIENT_CNXNS": "1"}),
		zkcontainer.WithTLS(zkcontainer.ClientAuthNeed), zkcontainer.WithSuperuser("secret"),
		zkcontainer.WithSASLDigest(map[string]string{"alice": "wonder land"}),
		zkcontainer.WithInitData(map[string][]byte{"/orders": []byte("x")}))
	t.Cleanup(func() { check(t, e.Terminate(context.WithoutCancel(ctx))) })
	check(t, err)
	made := must(zkcontainer.Left(ctx, e))(t)
	if len(made) != 9 { // two containers with three volumes each, and the network
		t.Errorf("made: %v", made)
	}
	c := e.Member(1)
	if said, ok := saslCreate(t, c, "wonder land"); !ok {
		t.Errorf("no login by SASL:\n%s", said)
	}
	_, out, err := c.Exec(ctx, []string{"bash", "-c", "tr '\\0' ' ' < /proc/1/cmdline"})
	check(t, err)
	first := string(must(io.ReadAll(out))(t))
	// The first process is the server, so signals reach it, and this package's heap comes last.
	if heap := first[strings.LastIndex(first, "-Xmx")+1:]; !strings.Contains(first, "java") || !strings.HasPrefix(heap, "Xmx192m") {
		t.Errorf("the first process is %s", first)
	}
	check(t, c.Restart(ctx))
	must(e.AwaitServing(ctx))(t)
	if conf := must(c.FourLetter(ctx, "conf"))(t); !strings.Contains(conf, "tickTime=500\n") || !strings.Contains(conf, "maxClientCnxns=0\n") {
		t.Errorf("conf:\n%s", conf)
	}
	conn, events, err := zk.Connect(e.SecureServers(), 6*time.Second, zk.WithLogger(quiet{}), zk.WithDialer(secureDialer(must(c.TLSConfig())(t))))
	check(t, err)
	defer conn.Close()
	await(ctx, t, events, zk.StateHasSession)
	if data, _, err := conn.Get("/orders"); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	check(t, e.Terminate(ctx))
	if still := must(zkcontainer.Still(ctx, made))(t); len(still) != 0 {
		t.Errorf("left: %v", still)
	}
}
