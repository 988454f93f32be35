import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;

/** Requests that Curator's recipes never send, and Curator's own builders. */
final class Handle {
    static void add(Steps steps) {
        steps.add("handle", Handle::handle);
        steps.add("builders", Handle::builders);
        steps.add("namespace", Handle::namespace);
        steps.add("background", Handle::background);
        steps.add("reconfigure", Handle::reconfigure);
    }

    private static void handle(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        zk.create(w.path(""), null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        for (String name : List.of("b", "a", "ab")) {
            zk.create(w.path(name), null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        }
        zk.create(w.path("p"), null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.create(w.path("p/q"), null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        w.see("ephemerals", zk.getEphemerals().stream().sorted().toList());
        w.see("ephemerals with a prefix", zk.getEphemerals(w.path("a")).stream().sorted().toList());
        w.see("ephemerals with another", zk.getEphemerals("/none"));
        w.see("number of descendants", zk.getAllChildrenNumber(w.path("")));
        w.see("of a leaf", zk.getAllChildrenNumber(w.path("a")));
        w.see("of nothing", w.outcome(() -> zk.getAllChildrenNumber(w.path("none"))));
        w.see("who", zk.whoAmI().stream().map(c -> c.getAuthScheme() + ":" + !c.getUser().isEmpty()).toList());
        CompletableFuture<String> synced = new CompletableFuture<>();
        zk.sync(w.path("none"), (rc, path, ctx) -> synced.complete(rc + " " + path), null);
        w.see("sync of nothing", synced.get(10, TimeUnit.SECONDS));
        w.see("config", w.outcome(() -> World.text(zk.getConfig(false, null)).isEmpty()));
        w.see("timeout", zk.getSessionTimeout());
    }

    private static void builders(World w) throws Exception {
        CuratorFramework c = w.client();
        w.see("parents", c.create().creatingParentsIfNeeded().forPath(w.path("a/b/c"), World.bytes("1")));
        w.see("containers", c.create().creatingParentContainersIfNeeded().forPath(w.path("d/e/f"), World.bytes("2")));
        w.see("or set", c.create().orSetData().forPath(w.path("a/b/c"), World.bytes("3")));
        w.see("or set a version", w.outcome(() -> c.create().orSetData(7).forPath(w.path("a/b/c"), World.bytes("4"))));
        w.see("idempotent create", c.create().idempotent().forPath(w.path("a/i"), World.bytes("5")));
        w.see("and again", c.create().idempotent().forPath(w.path("a/i"), World.bytes("5")));
        w.see("and with other data", w.outcome(() -> c.create().idempotent().forPath(w.path("a/i"), World.bytes("6"))));
        w.see("idempotent set", c.setData().idempotent().withVersion(0).forPath(w.path("a/i"), World.bytes("7")).getVersion());
        w.see("and again ", c.setData().idempotent().withVersion(0).forPath(w.path("a/i"), World.bytes("7")).getVersion());
        w.see("protected", w.ask("mask", c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(w.path("a/x-"))));
        c.create().compressed().forPath(w.path("a/zip"), World.bytes("compressed"));
        w.see("compressed", World.text(c.getData().decompressed().forPath(w.path("a/zip"))));
        c.sync().forPath(w.path("a"));
        w.see("exists with parents", c.checkExists().creatingParentsIfNeeded().forPath(w.path("g/h/i")));
        w.tree("made");
        c.delete().guaranteed().deletingChildrenIfNeeded().forPath(w.path("a"));
        c.delete().quietly().forPath(w.path("a"));
        w.see("delete in vain", w.outcome(() -> c.delete().forPath(w.path("a"))));
    }

    private static void namespace(World w) throws Exception {
        CuratorFramework c = w.start(w.builder(World.SESSION_MILLIS).namespace(w.path("").substring(1) + "/inner"));
        c.create().forPath("/a", World.bytes("1"));
        w.see("children", c.getChildren().forPath("/"));
        w.see("outside", World.text(c.usingNamespace(null).getData().forPath(w.path("inner/a"))));
        w.tree("made");
        CuratorFramework chroot = w.start(w.builder(World.SESSION_MILLIS).connectString(w.proxied() + w.path("inner")));
        w.see("below a chroot", chroot.getChildren().forPath("/"));
        chroot.create().forPath("/b");
        w.see("seen outside", c.getChildren().forPath("/").stream().sorted().toList());
    }

    /** Many requests in flight: answers come in the order of the requests. */
    private static void background(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        for (int i = 0; i < 300; i++) {
            String path = w.path("n" + i);
            switch (i % 3) {
                case 0 -> c.create().inBackground((x, e) -> heard.add(e.getType() + " " + e.getPath() + " " + e.getResultCode())).forPath(path);
                case 1 -> c.checkExists().inBackground((x, e) -> heard.add(e.getType() + " " + e.getPath() + " " + e.getResultCode()))
                        .forPath(w.path("n" + (i - 1)));
                default -> c.delete().inBackground((x, e) -> heard.add(e.getType() + " " + e.getPath() + " " + e.getResultCode()))
                        .forPath(w.path("n" + (i - 2)));
            }
        }
        w.await("all answers", () -> heard.size() == 300);
        w.see("heard", heard.hashCode() + " " + heard.subList(0, 6));
    }

    private static void reconfigure(World w) throws Exception {
        try (ZooKeeperAdmin admin = new ZooKeeperAdmin(w.proxied(), World.SESSION_MILLIS, e -> { })) {
            w.see("reconfigure", w.outcome(() -> admin.reconfigure("server.9=h:1:2;3", null, null, -1, null)));
        }
    }
}
