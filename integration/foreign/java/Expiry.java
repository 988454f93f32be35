import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** Sessions end: by a twin that closes them, and by silence. */
@SuppressWarnings("deprecation") // NodeCache is still in use
final class Expiry {
    static void add(Steps steps) {
        steps.add("expiry", Expiry::states);
        steps.add("expiry-recipes", Expiry::recipes);
        steps.add("expiry-latch", Expiry::latch);
        steps.add("expiry-by-silence", Expiry::silence);
        steps.add("expiry-password", Expiry::password);
    }

    /** Ends a client's session behind its back. */
    private static void expire(World w, CuratorFramework c) throws Exception {
        ZooKeeper own = c.getZookeeperClient().getZooKeeper();
        CountDownLatch connected = new CountDownLatch(1);
        Watcher watcher = e -> {
            if (e.getState() != Watcher.Event.KeeperState.Disconnected) {
                connected.countDown();
            }
        };
        w.ask("refuse"); // or the client comes back before its twin has closed the session
        ZooKeeper twin = new ZooKeeper(w.witness().getZookeeperClient().getCurrentConnectionString(), own.getSessionTimeout(), watcher,
                own.getSessionId(), own.getSessionPasswd());
        w.check(connected.await(10, TimeUnit.SECONDS), "the twin does not connect");
        w.see("twin", twin.getState());
        twin.close();
        w.ask("cut");
        w.ask("accept");
    }

    /**
     * The states in the order in which they were first told. Curator may tell of one loss twice, with a
     * reconnection between: its ConnectionStateManager concludes RECONNECTED from the new handle, and the
     * new handle's first event concludes LOST from being another. How many sessions were lost, the handles say.
     */
    private static List<String> once(List<String> states) {
        synchronized (states) {
            return new ArrayList<>(new LinkedHashSet<>(states));
        }
    }

    private static void states(World w) throws Exception {
        CuratorFramework c = w.client();
        List<String> states = Collections.synchronizedList(new ArrayList<>());
        c.getConnectionStateListenable().addListener(Faults.changes(states));
        c.create().forPath(w.path(""));
        c.create().withMode(CreateMode.EPHEMERAL).forPath(w.path("e"));
        long session = c.getZookeeperClient().getZooKeeper().getSessionId();
        long handles = c.getZookeeperClient().getInstanceIndex();
        expire(w, c);
        w.await("reconnection, have " + states, () -> states.contains("RECONNECTED"));
        w.see("states", once(states));
        w.see("another session", session != c.getZookeeperClient().getZooKeeper().getSessionId());
        w.see("new handles", c.getZookeeperClient().getInstanceIndex() - handles);
        w.tree("without the ephemeral");
    }

    private static void recipes(World w) throws Exception {
        w.loose(); // the node is made again upon the lost watch and upon the reconnection, and written if it is there
        CuratorFramework c = w.client();
        PersistentNode node = w.closing(new PersistentNode(c, CreateMode.EPHEMERAL, false, w.path("node"), World.bytes("1")));
        node.start();
        w.check(node.waitForInitialCreate(10, TimeUnit.SECONDS), "not created");
        w.witness().create().forPath(w.path("data"), World.bytes("1"));
        NodeCache cache = w.closing(new NodeCache(c, w.path("data")));
        cache.start(true);
        CuratorCache tree = w.closing(CuratorCache.build(c, w.path("data")));
        tree.start();
        w.await("the cache", () -> tree.size() == 1);
        InterProcessMutex lock = new InterProcessMutex(c, w.path("lock"));
        lock.acquire();
        InterProcessMutex next = new InterProcessMutex(w.witness(), w.path("lock"));
        Future<?> waiting = w.thread().submit(() -> {
            next.acquire();
            return null;
        });
        w.awaitChildren(w.path("lock"), 2);
        expire(w, c);
        waiting.get(10, TimeUnit.SECONDS);
        w.await("the node", () -> w.witness().checkExists().forPath(w.path("node")) != null);
        w.witness().setData().forPath(w.path("data"), World.bytes("2"));
        w.await("the node cache", () -> "2".equals(World.text(cache.getCurrentData().getData())));
        w.await("the tree cache", () -> tree.get(w.path("data")).map(d -> "2".equals(World.text(d.getData()))).orElse(false));
        w.see("the old holder thinks it holds", lock.isAcquiredInThisProcess());
        lock.release();
        w.tree("after");
    }

    private static void latch(World w) throws Exception {
        w.loose(); // Curator 5.4 may make a node again while it closes a latch
        CuratorFramework c = w.client();
        LeaderLatch one = new LeaderLatch(c, w.path("latch"), "one");
        LeaderLatch two = new LeaderLatch(w.witness(), w.path("latch"), "two"); // no cut reaches it
        one.start();
        w.check(one.await(10, TimeUnit.SECONDS), "no leader");
        two.start();
        w.awaitChildren(w.path("latch"), 2);
        w.watches("before", 1);
        expire(w, c);
        w.check(two.await(15, TimeUnit.SECONDS), "no successor");
        w.await("two nodes", () -> w.children(w.path("latch")).size() == 2);
        w.await("one's new node", () -> one.getParticipants().size() == 2);
        w.see("who leads", one.hasLeadership() + " " + two.hasLeadership());
        two.close();
        w.check(one.await(10, TimeUnit.SECONDS), "no leader in the end");
        one.close();
        c.close(); // with the session ends a node that was made again
        w.awaitChildren(w.path("latch"), 0);
    }

    /** A client that the server does not hear is thrown out after its timeout, and no sooner. */
    private static void silence(World w) throws Exception {
        CuratorFramework c = w.client(4000); // with less, a busy machine cuts the client off before the step does
        List<String> states = Collections.synchronizedList(new ArrayList<>());
        c.getConnectionStateListenable().addListener(Faults.changes(states));
        c.create().forPath(w.path(""));
        c.create().withMode(CreateMode.EPHEMERAL).forPath(w.path("e"));
        w.see("timeout", c.getZookeeperClient().getZooKeeper().getSessionTimeout());
        long handles = c.getZookeeperClient().getInstanceIndex();
        long start = System.nanoTime();
        c.checkExists().forPath("/"); // the server hears of the client last
        w.ask("stall");
        w.await("the end of the session", () -> w.witness().checkExists().forPath(w.path("e")) == null);
        long millis = (System.nanoTime() - start) / 1_000_000;
        w.check(millis >= 4000 && millis < 9000, "ended after " + millis + " ms");
        w.ask("cut");
        w.ask("resume");
        w.await("reconnection, have " + states, () -> states.contains("RECONNECTED"));
        w.see("states", once(states));
        w.see("new handles", c.getZookeeperClient().getInstanceIndex() - handles);
    }

    private static void password(World w) throws Exception {
        ZooKeeper own = w.client().getZookeeperClient().getZooKeeper();
        for (String kind : List.of("wrong password", "unknown session")) {
            CountDownLatch told = new CountDownLatch(1);
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            boolean wrong = kind.startsWith("wrong");
            ZooKeeper twin = new ZooKeeper(w.proxied(), 10_000, e -> {
                heard.add(e.getState().name());
                told.countDown();
            }, wrong ? own.getSessionId() : 0x1234567L, wrong ? new byte[16] : own.getSessionPasswd());
            w.check(told.await(10, TimeUnit.SECONDS), "nothing heard");
            w.see(kind, heard.get(0)); // that the handle is closed is told after it, or not at all
            twin.close();
        }
        // The server has closed the connection of the session before it looked at the password.
        w.await("the session", () -> w.outcome(() -> own.exists("/", false) != null).equals("true"));
        w.see("the session lives", own.getState());
        w.see("negotiated", negotiated(w, 900) + " " + negotiated(w, 3000) + " " + negotiated(w, 600_000));
    }

    private static int negotiated(World w, int millis) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        Watcher watcher = e -> {
            if (e.getState() == Watcher.Event.KeeperState.SyncConnected) { // not a first try that took too long
                connected.countDown();
            }
        };
        try (ZooKeeper zk = new ZooKeeper(w.proxied(), millis, watcher)) {
            w.check(connected.await(10, TimeUnit.SECONDS), "no connection");
            return zk.getSessionTimeout();
        }
    }
}
