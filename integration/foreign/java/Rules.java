import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Errors, Stats, permissions and sizes. */
final class Rules {
    static void add(Steps steps) {
        steps.add("errors", Rules::errors);
        steps.add("stat", Rules::stat);
        steps.add("acl", Rules::acl);
        steps.add("sequence", Rules::sequence);
        steps.add("sizes", Rules::sizes);
    }

    private static final List<ACL> OPEN = ZooDefs.Ids.OPEN_ACL_UNSAFE;

    private static void errors(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        zk.create(w.path(""), new byte[0], OPEN, CreateMode.PERSISTENT);
        zk.create(w.path("e"), new byte[0], OPEN, CreateMode.EPHEMERAL);
        zk.create(w.path("full"), new byte[0], OPEN, CreateMode.PERSISTENT);
        zk.create(w.path("full/x"), null, OPEN, CreateMode.PERSISTENT);
        String none = w.path("none");
        w.see("create below nothing", w.outcome(() -> zk.create(none + "/x", null, OPEN, CreateMode.PERSISTENT)));
        w.see("create again", w.outcome(() -> zk.create(w.path("e"), null, OPEN, CreateMode.PERSISTENT)));
        w.see("create below ephemeral", w.outcome(() -> zk.create(w.path("e/x"), null, OPEN, CreateMode.PERSISTENT)));
        w.see("create container below ephemeral", w.outcome(() -> zk.create(w.path("e/x"), null, OPEN, CreateMode.CONTAINER)));
        w.see("create without ACL", w.outcome(() -> zk.create(w.path("a"), null, List.of(), CreateMode.PERSISTENT)));
        w.see("create in the system's folder", w.outcome(() -> zk.create("/zookeeper/mine", null, OPEN, CreateMode.PERSISTENT)));
        w.see("create the root", w.outcome(() -> zk.create("/", null, OPEN, CreateMode.PERSISTENT)));
        w.see("delete nothing", w.outcome(() -> delete(zk, none, -1)));
        w.see("delete a full folder", w.outcome(() -> delete(zk, w.path("full"), -1)));
        w.see("delete a wrong version", w.outcome(() -> delete(zk, w.path("full/x"), 3)));
        w.see("delete the root", w.outcome(() -> delete(zk, "/", -1)));
        w.see("delete the system's folder", w.outcome(() -> delete(zk, "/zookeeper", -1)));
        w.see("delete the quota folder", w.outcome(() -> delete(zk, "/zookeeper/quota", -1)));
        w.see("set nothing", w.outcome(() -> zk.setData(none, null, -1)));
        w.see("set a wrong version", w.outcome(() -> zk.setData(w.path("e"), null, 1)));
        w.see("set the config", w.outcome(() -> zk.setData("/zookeeper/config", null, 77)));
        w.see("get nothing", w.outcome(() -> zk.getData(none, false, null)));
        w.see("exists nothing", w.outcome(() -> zk.exists(none, false)));
        w.see("list nothing", w.outcome(() -> zk.getChildren(none, false)));
        w.see("ACL of nothing", w.outcome(() -> zk.getACL(none, null)));
        w.see("set ACL of nothing", w.outcome(() -> zk.setACL(none, OPEN, -1)));
        w.see("set a wrong ACL version", w.outcome(() -> zk.setACL(w.path("e"), OPEN, 4)));
        w.see("set an empty ACL", w.outcome(() -> zk.setACL(w.path("e"), List.of(), -1)));
        w.see("null data", w.outcome(() -> World.text(zk.getData(w.path("full/x"), false, null))));
        w.see("system's folder", zk.getChildren("/zookeeper", false).stream().sorted().toList());
        w.tree("left");
    }

    private static String delete(ZooKeeper zk, String path, int version) throws Exception {
        zk.delete(path, version);
        return "deleted";
    }

    private static String text(Stat s, long since) {
        return "v" + s.getVersion() + " c" + s.getCversion() + " a" + s.getAversion() + " n" + s.getNumChildren() + " l" + s.getDataLength()
                + " czxid+" + (s.getCzxid() - since) + " mzxid+" + (s.getMzxid() - since) + " pzxid+" + (s.getPzxid() - since)
                + " times " + (s.getMtime() >= s.getCtime()) + " owner " + (s.getEphemeralOwner() != 0);
    }

    /** One client alone on a node: every field but the times is determined. */
    private static void stat(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        String path = w.path("");
        Stat s = new Stat();
        zk.create(path, World.bytes("abc"), OPEN, CreateMode.PERSISTENT, s);
        long since = s.getCzxid();
        w.see("created", text(s, since));
        w.see("set", text(zk.setData(path, World.bytes("abcdef"), 0), since));
        zk.create(path + "/a", null, OPEN, CreateMode.EPHEMERAL, s);
        w.see("child", text(s, since));
        w.see("after a child", text(zk.exists(path, false), since));
        zk.create(path + "/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL, s);
        w.outcome(() -> zk.create(path + "/a", null, OPEN, CreateMode.PERSISTENT)); // takes a zxid
        w.outcome(() -> zk.setData(path, null, 9));
        zk.delete(path + "/a", -1);
        zk.getData(path, false, s);
        w.see("after two and a deletion", text(s, since));
        w.see("ACL", text(zk.setACL(path, ZooDefs.Ids.READ_ACL_UNSAFE, 0), since));
        zk.getACL(path, s);
        w.see("of the ACL", text(s, since));
        zk.create(path + "-2", null, OPEN, CreateMode.CONTAINER, s);
        w.see("container", text(s, since));
        zk.create(path + "-3", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, s, 5000);
        w.see("TTL", text(s, since));
        zk.getChildren(path, false, s);
        w.see("of the list", text(s, since));
        zk.delete(path + "-2", -1);
        zk.delete(path + "-3", -1);
    }

    private static void acl(World w) throws Exception {
        CuratorFramework mine = w.start(w.builder(World.SESSION_MILLIS).authorization("digest", World.bytes("me:secret")));
        ZooKeeper zk = mine.getZookeeperClient().getZooKeeper();
        ZooKeeper other = w.client().getZookeeperClient().getZooKeeper();
        zk.create(w.path(""), World.bytes("x"), OPEN, CreateMode.PERSISTENT);
        String path = w.path("mine");
        w.see("whoami", zk.whoAmI().stream().map(c -> c.getAuthScheme()).sorted().toList());
        zk.create(path, World.bytes("secret"), ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        zk.create(path + "/child", World.bytes("x"), ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        w.see("ACL", zk.getACL(path, null));
        w.see("other gets", w.outcome(() -> other.getData(path, false, null)));
        w.see("other lists", w.outcome(() -> other.getChildren(path, false)));
        w.see("other looks", w.outcome(() -> other.exists(path, false).getDataLength()));
        w.see("other sets", w.outcome(() -> other.setData(path, null, -1)));
        w.see("other creates", w.outcome(() -> other.create(path + "/x", null, OPEN, CreateMode.PERSISTENT)));
        w.see("other deletes the child", w.outcome(() -> delete(other, path + "/child", -1)));
        w.see("other reads the ACL", w.outcome(() -> other.getACL(path, null)));
        w.see("other sets the ACL", w.outcome(() -> other.setACL(path, OPEN, -1)));
        w.see("other has no id to give", w.outcome(() -> other.create(w.path("x"), null, ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT)));
        zk.setACL(path, java.util.Arrays.asList(new ACL(ZooDefs.Perms.READ, ZooDefs.Ids.ANYONE_ID_UNSAFE),
                new ACL(ZooDefs.Perms.ALL, new Id("auth", ""))), -1);
        w.see("other reads now", World.text(other.getData(path, false, null)));
        w.see("other reads the ACL now", other.getACL(path, null));
        w.see("unknown scheme", w.outcome(() -> zk.setACL(path, java.util.Arrays.asList(new ACL(31, new Id("none", "x"))), -1)));
        w.see("bad address", w.outcome(() -> zk.setACL(path, java.util.Arrays.asList(new ACL(31, new Id("ip", "no address"))), -1)));
        w.see("address", w.outcome(() -> zk.setACL(path, java.util.Arrays.asList(new ACL(31, new Id("ip", "1.2.3.0/24"))), -1).getAversion()));
        w.see("locked out", w.outcome(() -> zk.getData(path, false, null)));
        other.addAuthInfo("digest", World.bytes("me:wrong"));
        w.see("wrong password", w.outcome(() -> other.getData(path + "/child", false, null)));
        other.addAuthInfo("digest", World.bytes("me:secret"));
        w.see("right password", w.outcome(() -> World.text(other.getData(path + "/child", false, null))));
    }

    private static void sequence(World w) throws Exception {
        ZooKeeper zk = w.client().getZookeeperClient().getZooKeeper();
        zk.create(w.path(""), null, OPEN, CreateMode.PERSISTENT);
        zk.create(w.path("plain"), null, OPEN, CreateMode.PERSISTENT);
        w.see("counts plain ones", zk.create(w.path("s-"), null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL));
        zk.delete(w.path("plain"), -1);
        w.see("not deletions", zk.create(w.path("s-"), null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL));
        w.outcome(() -> zk.create(w.path("s-0000000001"), null, OPEN, CreateMode.PERSISTENT));
        w.see("not failures", zk.create(w.path("x"), null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL));
        w.see("without a name", zk.create(w.path("") + "/", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL));
        w.see("with TTL", zk.create(w.path("t-"), null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, null, 9000));
    }

    private static void sizes(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        c.create().forPath(w.path("large"), new byte[1_000_000]);
        w.see("large", c.getData().forPath(w.path("large")).length);
        CuratorFramework brief = w.start(w.builder(World.SESSION_MILLIS)
                .retryPolicy(new org.apache.curator.retry.RetryOneTime(50)));
        w.see("too large", w.outcome(() -> brief.setData().forPath(w.path("large"), new byte[1_100_000])));
        for (int i = 0; i < 1500; i++) {
            c.create().inBackground().forPath(w.path("many/child-with-a-rather-long-name-" + i).replace("many/", ""));
        }
        w.awaitChildren(w.path(""), 1501);
        w.see("many", c.getChildren().forPath(w.path("")).size());
        c.delete().deletingChildrenIfNeeded().forPath(w.path(""));
        c.create().forPath(w.path(""));
    }
}
