import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.WatcherRemoveCuratorFramework;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.CreateMode;

/** Watches through Java's own handle: what fires, what is left, what can be taken back. */
final class Watching {
    static void add(Steps steps) {
        steps.add("watch-kinds", Watching::kinds);
        steps.add("watch-mixed", Watching::mixed);
        steps.add("watch-removal", Watching::removal);
        steps.add("watch-facade", Watching::facade);
        steps.add("watch-transaction", Watching::transaction);
    }

    /** Remembers events by name. */
    static final class Ear {
        final List<String> heard = Collections.synchronizedList(new ArrayList<>());

        Watcher named(String name) {
            return new Watcher() {
                @Override
                public void process(WatchedEvent e) {
                    if (e.getType() != Event.EventType.None) {
                        heard.add(name + ":" + e.getType() + ":" + e.getPath());
                    }
                }
            };
        }

        /** What was heard once the client has been answered to a later request. */
        String after(ZooKeeper zk) throws Exception {
            zk.exists("/", false);
            java.util.concurrent.CompletableFuture<Object> fence = new java.util.concurrent.CompletableFuture<>();
            zk.sync("/", (rc, path, ctx) -> fence.complete(path), null); // told on the thread of events
            fence.get();
            String text = heard.stream().sorted().toList().toString(); // the client tells its watchers in no order
            heard.clear();
            return text;
        }
    }

    private static void kinds(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        ZooKeeper other = w.client().getZookeeperClient().getZooKeeper();
        String path = w.path("");
        Ear ear = new Ear();
        zk.exists(path, ear.named("missing"));
        other.create(path, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        w.see("created", ear.after(zk));
        zk.exists(path, ear.named("exists"));
        zk.getData(path, ear.named("data"), null);
        zk.getChildren(path, ear.named("children"));
        other.setData(path, null, -1);
        w.see("data", ear.after(zk));
        other.setData(path, null, -1);
        w.see("again", ear.after(zk));
        zk.exists(path, ear.named("exists"));
        other.setACL(path, ZooDefs.Ids.OPEN_ACL_UNSAFE, -1);
        w.see("an ACL", ear.after(zk));
        other.create(path + "/a", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        w.see("a child", ear.after(zk));
        zk.getChildren(path, ear.named("children"));
        other.setData(path + "/a", null, -1);
        w.see("a child's data", ear.after(zk));
        other.delete(path + "/a", -1);
        w.see("a child's end", ear.after(zk));
        zk.getData(path, ear.named("data"), null);
        zk.getChildren(path, ear.named("children"));
        other.delete(path, -1);
        w.see("the end", ear.after(zk));
        w.see("on nothing", w.outcome(() -> zk.getData(path, ear.named("none"), null))
                + w.outcome(() -> zk.getChildren(path, ear.named("none"))));
        other.create(path, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        w.see("after a failed read", ear.after(zk));
        zk.getData(path, ear.named("own"), null);
        zk.setData(path, null, -1);
        w.see("by itself", ear.after(zk));
    }

    private static void mixed(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        ZooKeeper other = w.client().getZookeeperClient().getZooKeeper();
        String path = w.path("");
        other.create(path, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        for (AddWatchMode mode : AddWatchMode.values()) {
            Ear ear = new Ear();
            Watcher kept = ear.named("kept");
            zk.addWatch(path, kept, mode);
            zk.getData(path, ear.named("data"), null);
            zk.getChildren(path, ear.named("children"));
            w.watches(mode + " and data", 1);
            other.setData(path, null, -1);
            w.see(mode + " data", ear.after(zk));
            other.setData(path, null, -1);
            w.see(mode + " data again", ear.after(zk));
            other.create(path + "/a", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            w.see(mode + " child", ear.after(zk));
            other.create(path + "/a/b", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            other.setData(path + "/a/b", null, -1);
            other.delete(path + "/a/b", -1);
            other.delete(path + "/a", -1);
            w.see(mode + " below", ear.after(zk));
            // Before 3.9 the watch that came later and fired has replaced it.
            w.watches(mode + " left", w.ask("release").startsWith("3.8.") ? 0 : 1);
            w.see(mode + " taken back", w.outcome(() -> remove(zk, path, kept, Watcher.WatcherType.Any)));
            w.see(mode + " all taken back", w.outcome(() -> {
                zk.removeAllWatches(path, Watcher.WatcherType.Any, true);
                return "removed";
            }));
            other.setData(path, null, -1);
            w.see(mode + " removed", ear.after(zk));
        }
    }

    private static void removal(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        ZooKeeper other = w.client().getZookeeperClient().getZooKeeper();
        String path = w.path("");
        other.create(path, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        Ear ear = new Ear();
        Watcher one = ear.named("one");
        Watcher two = ear.named("two");
        w.see("none", w.outcome(() -> remove(zk, path, one, Watcher.WatcherType.Any)));
        zk.getData(path, one, null);
        zk.getData(path, two, null);
        zk.getChildren(path, one);
        w.see("of the wrong kind", w.outcome(() -> remove(zk, path, two, Watcher.WatcherType.Children)));
        w.see("one of two", w.outcome(() -> remove(zk, path, one, Watcher.WatcherType.Data)));
        w.watches("the other is left", 1);
        w.see("the last of data", w.outcome(() -> remove(zk, path, two, Watcher.WatcherType.Data)));
        w.watches("data is left on the server", 1); // the Java client asks only whether it is there
        w.see("children", w.outcome(() -> remove(zk, path, one, Watcher.WatcherType.Children)));
        other.setData(path, null, -1);
        other.create(path + "/a", null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        w.see("silence", ear.after(zk).replaceAll("[a-z]+:(Data|Child)WatchRemoved:", "$1 removed "));
        zk.exists(path + "/none", one);
        w.watches("on a missing node", 1);
        w.see("on a missing node", w.outcome(() -> remove(zk, path + "/none", one, Watcher.WatcherType.Data)));
        zk.getData(path, one, null);
        zk.getChildren(path, two);
        zk.removeAllWatches(path, Watcher.WatcherType.Any, false);
        w.watches("all but the one on the missing node removed", 1);
        zk.getData(path, one, null);
        w.see("checked on another connection", w.outcome(() -> remove(other, path, one, Watcher.WatcherType.Data)));
        zk.removeAllWatches(path, Watcher.WatcherType.Data, true);
    }

    private static String remove(ZooKeeper zk, String path, Watcher watcher, Watcher.WatcherType type) throws Exception {
        zk.removeWatches(path, watcher, type, false);
        return "removed";
    }

    private static void facade(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        WatcherRemoveCuratorFramework facade = c.newWatcherRemoveCuratorFramework();
        Ear ear = new Ear();
        facade.getData().usingWatcher(ear.named("data")).forPath(w.path(""));
        facade.checkExists().usingWatcher(ear.named("exists")).forPath(w.path("none"));
        facade.getChildren().usingWatcher(ear.named("children")).forPath(w.path(""));
        w.watches("three set", 2);
        facade.removeWatchers();
        w.watches("left on the server", 2);
        c.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(ear.named("tree")).forPath(w.path(""));
        w.watches("recursive too", 2);
        c.watchers().removeAll().ofType(Watcher.WatcherType.Any).forPath(w.path(""));
        w.watches("the one on the missing node is left", 1);
        w.see("removal in vain", w.outcome(() -> {
            c.watchers().remove(ear.named("none")).forPath(w.path(""));
            return "removed";
        }));
    }

    private static void transaction(World w) throws Exception {
        CuratorFramework c = w.client();
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        String path = w.path("");
        c.create().forPath(path);
        Ear ear = new Ear();
        zk.addWatch(path, ear.named("all"), AddWatchMode.PERSISTENT_RECURSIVE);
        zk.getChildren(path, ear.named("children"));
        zk.exists(path + "/b", ear.named("b"));
        c.transaction().forOperations(
                c.transactionOp().create().forPath(path + "/a"),
                c.transactionOp().create().forPath(path + "/b"),
                c.transactionOp().setData().forPath(path + "/a"),
                c.transactionOp().delete().forPath(path + "/b"));
        w.see("good", ear.after(zk));
        w.outcome(() -> c.transaction().forOperations(
                c.transactionOp().setData().forPath(path + "/a"), c.transactionOp().delete().forPath(path + "/none")));
        w.see("refused", ear.after(zk));
    }
}
