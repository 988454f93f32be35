import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.zookeeper.CreateMode;

/** Nodes that come back, and groups. */
final class Nodes {
    static void add(Steps steps) {
        steps.add("persistent-node", Nodes::persistent);
        steps.add("persistent-node-modes", Nodes::modes);
        steps.add("persistent-ttl-node", Nodes::ttl);
        steps.add("group-member", Nodes::group);
    }

    private static void persistent(World w) throws Exception {
        String path = w.path("node");
        PersistentNode node = w.closing(new PersistentNode(w.client(), CreateMode.EPHEMERAL, false, path, World.bytes("1")));
        node.start();
        w.check(node.waitForInitialCreate(10, TimeUnit.SECONDS), "not created");
        w.watches("on the node", 1);
        w.tree("created");
        w.witness().delete().forPath(path);
        w.await("creation again", () -> w.witness().checkExists().forPath(path) != null);
        w.watches("on the node again", 1);
        node.setData(World.bytes("2"));
        w.await("the data", () -> "2".equals(World.text(w.witness().getData().forPath(path))));
        w.tree("changed");
        node.close();
        w.see("closed", w.children(w.path("")));
        // Another session's node in the way is taken over as it is.
        w.witness().create().withMode(CreateMode.EPHEMERAL).forPath(path, World.bytes("other"));
        PersistentNode second = w.closing(new PersistentNode(w.client(), CreateMode.EPHEMERAL, false, path, World.bytes("3")));
        second.start();
        w.check(second.waitForInitialCreate(10, TimeUnit.SECONDS), "not created in the way of another");
        w.await("data over another's", () -> "3".equals(World.text(w.witness().getData().forPath(path))));
        w.tree("taken over");
    }

    private static void modes(World w) throws Exception {
        CuratorFramework client = w.client();
        for (CreateMode mode : new CreateMode[] {CreateMode.PERSISTENT, CreateMode.PERSISTENT_SEQUENTIAL,
            CreateMode.EPHEMERAL_SEQUENTIAL, CreateMode.CONTAINER}) {
            for (boolean guarded : new boolean[] {false, true}) {
                String folder = w.path(mode + "-" + guarded);
                PersistentNode node = w.closing(new PersistentNode(client, mode, guarded, folder + "/n-", World.bytes("x")));
                node.start();
                w.check(node.waitForInitialCreate(10, TimeUnit.SECONDS), "not created: " + mode);
                w.awaitChildren(folder, 1);
                String first = node.getActualPath();
                w.watches(mode + "-" + guarded, 1);
                w.witness().delete().forPath(first);
                w.await("again " + mode, () -> w.children(folder).size() == 1 && node.getActualPath() != null
                        && w.witness().checkExists().forPath(node.getActualPath()) != null);
                w.watches(mode + "-" + guarded + "-again", 1);
                w.see(mode + " " + guarded, w.ask("mask", first) + " " + w.ask("mask", node.getActualPath()));
                w.tree(mode + "-" + guarded);
                node.close();
            }
        }
    }

    private static void ttl(World w) throws Exception {
        String path = w.path("node");
        // By the clock, how often the node has been touched would depend on the load of the machine.
        List<Runnable> touches = new ArrayList<>();
        ScheduledThreadPoolExecutor clock = new ScheduledThreadPoolExecutor(1) {
            @Override
            public ScheduledFuture<?> scheduleAtFixedRate(Runnable touch, long delay, long period, TimeUnit unit) {
                touches.add(touch);
                return schedule(() -> { }, 0, unit);
            }
        };
        w.closing(clock::shutdownNow);
        PersistentTtlNode node = new PersistentTtlNode(w.client(), clock, path, 60_000, World.bytes("data"), "touch", 2, true);
        node.start();
        w.check(node.waitForInitialCreate(10, TimeUnit.SECONDS), "not created");
        w.tree("created");
        for (String label : List.of("touched", "touched again")) {
            touches.get(0).run();
            w.tree(label);
        }
        node.setData(World.bytes("new"));
        w.await("the data", () -> "new".equals(World.text(w.witness().getData().forPath(path))));
        node.close();
        w.tree("closed");
    }

    private static void group(World w) throws Exception {
        String path = w.path("group");
        GroupMember one = w.closing(new GroupMember(w.client(), path, "one", World.bytes("1")));
        GroupMember two = w.closing(new GroupMember(w.client(), path, "two", World.bytes("2")));
        one.start();
        two.start();
        w.await("two members", () -> one.getCurrentMembers().size() == 2 && two.getCurrentMembers().size() == 2);
        w.awaitChildren(path, 2);
        w.tree("two");
        two.setThisData(World.bytes("changed"));
        w.await("the payload", () -> "changed".equals(World.text(one.getCurrentMembers().get("two"))));
        two.close();
        w.await("one member", () -> one.getCurrentMembers().size() == 1);
        w.see("members", new TreeMap<>(one.getCurrentMembers()).keySet());
    }
}
