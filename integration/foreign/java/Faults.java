import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.ConnectionStateListener;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Connections are cut, sessions live on. */
@SuppressWarnings("deprecation") // Curator's older caches are still the ones in use
final class Faults {
    static void add(Steps steps) {
        steps.add("reconnect", Faults::reconnect);
        steps.add("reconnect-watches", Faults::watches);
        steps.add("reconnect-many-watches", Faults::manyWatches);
        steps.add("reconnect-recipes", Faults::recipes);
        steps.add("reconnect-auth", Faults::auth);
        steps.add("reconnect-latch", Faults::latch);
    }

    /** Remembers what happens after the first connection, which may or may not have been told of by now. */
    static ConnectionStateListener changes(List<String> states) {
        return (client, state) -> {
            if (state != ConnectionState.CONNECTED) {
                states.add(state.name());
            }
        };
    }

    private static void reconnect(World w) throws Exception {
        CuratorFramework c = w.client();
        List<String> states = Collections.synchronizedList(new ArrayList<>());
        c.getConnectionStateListenable().addListener(changes(states));
        c.create().forPath(w.path(""));
        c.create().withMode(CreateMode.EPHEMERAL).forPath(w.path("e"));
        long session = c.getZookeeperClient().getZooKeeper().getSessionId();
        for (int i = 1; i <= 3; i++) {
            int count = 2 * i;
            w.ask("cut");
            w.await("reconnected, have " + states, () -> states.size() >= count);
            w.see("works", c.getChildren().forPath(w.path("")));
        }
        w.see("states", states);
        w.see("same session", session == c.getZookeeperClient().getZooKeeper().getSessionId());
        w.tree("after cuts");
    }

    /** Sets a watch of every kind, changes things while the client is away, and looks at what it is told. */
    private static void watches(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        ZooKeeper other = w.witness().getZookeeperClient().getZooKeeper();
        List<org.apache.zookeeper.data.ACL> open = ZooDefs.Ids.OPEN_ACL_UNSAFE;
        other.create(w.path(""), null, open, CreateMode.PERSISTENT);
        for (String name : List.of("data", "gone", "same", "kids", "samekids", "gonekids", "kept", "tree", "quiet", "back", "exgone")) {
            other.create(w.path(name), null, open, CreateMode.PERSISTENT);
        }
        Watching.Ear ear = new Watching.Ear();
        for (String name : List.of("data", "gone", "same", "back")) {
            zk.getData(w.path(name), ear.named("data"), null);
        }
        for (String name : List.of("kids", "samekids", "gonekids")) {
            zk.getChildren(w.path(name), ear.named("children"));
        }
        for (String name : List.of("missing", "stillmissing", "exgone", "cameandwent")) {
            zk.exists(w.path(name), ear.named("exists"));
        }
        zk.addWatch(w.path("kept"), ear.named("kept"), AddWatchMode.PERSISTENT);
        zk.addWatch(w.path("tree"), ear.named("tree"), AddWatchMode.PERSISTENT_RECURSIVE);
        zk.addWatch(w.path("quiet"), ear.named("quiet"), AddWatchMode.PERSISTENT_RECURSIVE);
        w.watches("before", 11);
        w.ask("refuse");
        w.ask("cut");
        other.setData(w.path("data"), null, -1);
        other.delete(w.path("gone"), -1);
        other.delete(w.path("exgone"), -1);
        other.create(w.path("missing"), null, open, CreateMode.PERSISTENT);
        other.create(w.path("cameandwent"), null, open, CreateMode.PERSISTENT);
        other.delete(w.path("cameandwent"), -1);
        other.create(w.path("kids/a"), null, open, CreateMode.PERSISTENT);
        other.delete(w.path("gonekids"), -1);
        other.setData(w.path("samekids"), null, -1);
        other.delete(w.path("back"), -1);
        other.create(w.path("back"), null, open, CreateMode.PERSISTENT);
        other.setData(w.path("kept"), null, -1);
        other.create(w.path("tree/a"), null, open, CreateMode.PERSISTENT);
        w.ask("accept");
        w.await("the connection", () -> w.outcome(() -> zk.exists("/", false) != null).equals("true"));
        w.see("told of the time away", ear.after(zk));
        w.see("state", zk.getState());
        w.watches("after", 6);
        w.tree("after");
        other.setData(w.path("same"), null, -1);
        other.create(w.path("samekids/a"), null, open, CreateMode.PERSISTENT);
        other.create(w.path("stillmissing"), null, open, CreateMode.PERSISTENT);
        other.setData(w.path("kept"), null, -1);
        other.setData(w.path("tree/a"), null, -1);
        other.create(w.path("quiet/a"), null, open, CreateMode.PERSISTENT);
        w.see("after the reconnection", ear.after(zk));
        w.watches("in the end", 4);
    }

    /** More watches than one frame of their renewal holds. */
    private static void manyWatches(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        ZooKeeper other = w.witness().getZookeeperClient().getZooKeeper();
        other.create(w.path(""), null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Watching.Ear ear = new Watching.Ear();
        String filler = "x".repeat(200);
        int count = 1500;
        for (int i = 0; i < count; i++) {
            zk.exists(w.path(filler + i), ear.named("exists"), (rc, path, ctx, stat) -> { }, null);
        }
        w.watches("before", count);
        w.ask("refuse");
        w.ask("cut");
        for (int i = 0; i < count; i += 100) {
            other.create(w.path(filler + i), null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
        w.ask("accept");
        w.await("the events, have " + ear.heard.size(), () -> ear.heard.size() == count / 100);
        w.watches("after", count - count / 100);
        w.see("heard", new TreeSet<>(ear.heard).size());
    }

    private static void recipes(World w) throws Exception {
        CuratorFramework c = w.client();
        InterProcessMutex held = new InterProcessMutex(c, w.path("lock"));
        InterProcessMutex wanted = new InterProcessMutex(w.client(), w.path("lock"));
        held.acquire();
        ExecutorService thread = w.thread();
        Future<?> waiting = thread.submit(() -> {
            wanted.acquire();
            return null;
        });
        w.awaitChildren(w.path("lock"), 2);
        PathChildrenCache folder = w.closing(new PathChildrenCache(c, w.path("folder"), true));
        folder.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        CuratorCache tree = w.closing(CuratorCache.build(c, w.path("folder")));
        tree.start();
        SharedCount count = w.closing(new SharedCount(c, w.path("count"), 1));
        count.start();
        SharedCount setter = w.closing(new SharedCount(w.witness(), w.path("count"), 1));
        setter.start();
        w.await("the cache", () -> tree.size() == 1);
        w.watches("before", 4);
        w.ask("refuse");
        w.ask("cut");
        setter.setCount(2);
        w.witness().create().forPath(w.path("folder/a"), World.bytes("1"));
        w.ask("accept");
        w.await("the folder", () -> folder.getCurrentData().size() == 1);
        w.await("the tree", () -> tree.size() == 2);
        w.await("the count", () -> count.getCount() == 2);
        w.tree("reconnected");
        w.check(!waiting.isDone(), "the waiter passed the holder");
        held.release();
        waiting.get(10, TimeUnit.SECONDS);
        w.tree("handed over");
        thread.submit(() -> {
            wanted.release();
            return null;
        }).get();
    }

    private static void auth(World w) throws Exception {
        CuratorFramework mine = w.start(w.builder(World.SESSION_MILLIS).authorization("digest", World.bytes("me:secret")));
        mine.create().withACL(ZooDefs.Ids.CREATOR_ALL_ACL).forPath(w.path(""), World.bytes("secret"));
        w.ask("cut");
        w.see("read after a cut", World.text(mine.getData().forPath(w.path(""))));
    }

    /** Whoever is connected again first, the nodes are still there and the first of them leads. */
    private static void latch(World w) throws Exception {
        w.loose(); // Curator 5.4 may make a node again while it closes a latch
        CuratorFramework c = w.client();
        LeaderLatch one = new LeaderLatch(c, w.path("latch"), "one");
        CuratorFramework d = w.client();
        LeaderLatch two = new LeaderLatch(d, w.path("latch"), "two");
        one.start();
        w.check(one.await(10, TimeUnit.SECONDS), "no leader");
        two.start();
        w.awaitChildren(w.path("latch"), 2);
        w.watches("before", 1);
        w.ask("refuse");
        w.ask("cut");
        w.await("leadership given up", () -> !one.hasLeadership());
        w.see("nobody leads", one.hasLeadership() + " " + two.hasLeadership());
        w.ask("accept");
        w.check(one.await(10, TimeUnit.SECONDS), "no leader after the cut");
        w.watches("the second watches the first again", 1);
        w.see("who leads", one.hasLeadership() + " " + two.hasLeadership());
        w.tree("after");
        one.close();
        c.close(); // with the session ends a node that was made again
        w.check(two.await(10, TimeUnit.SECONDS), "no successor");
        two.close();
        d.close();
        w.awaitChildren(w.path("latch"), 0);
    }
}
