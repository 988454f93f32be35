import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/** Transactions, whole and refused, and transactions of reads. */
final class Transactions {
    static void add(Steps steps) {
        steps.add("transaction", Transactions::good);
        steps.add("transaction-refused", Transactions::refused);
        steps.add("transaction-modes", Transactions::modes);
        steps.add("multi-read", Transactions::reads);
    }

    private static void good(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        List<CuratorTransactionResult> results = c.transaction().forOperations(
                c.transactionOp().create().forPath(w.path("a"), World.bytes("1")),
                c.transactionOp().setData().forPath(w.path("a"), World.bytes("2")),
                c.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath(w.path("s-"), World.bytes("3")),
                c.transactionOp().check().withVersion(1).forPath(w.path("a")),
                c.transactionOp().create().withMode(CreateMode.EPHEMERAL).forPath(w.path("e"), World.bytes("4")),
                c.transactionOp().create().forPath(w.path("b"), World.bytes("5")),
                c.transactionOp().delete().forPath(w.path("b")));
        List<String> text = new ArrayList<>();
        for (CuratorTransactionResult r : results) {
            text.add(r.getType() + " " + r.getForPath() + " " + r.getResultPath() + " " + r.getError()
                    + " " + (r.getResultStat() == null ? "no stat" : r.getResultStat().getVersion() + "/" + r.getResultStat().getDataLength()));
        }
        w.see("results", text);
        w.tree("done");
    }

    private static String results(List<OpResult> results) {
        List<String> text = new ArrayList<>();
        for (OpResult r : results) {
            if (r instanceof OpResult.ErrorResult e) {
                text.add("error " + KeeperException.Code.get(e.getErr()));
            } else if (r instanceof OpResult.CreateResult c) {
                text.add("created " + c.getPath() + (c.getStat() == null ? "" : " length " + c.getStat().getDataLength()));
            } else if (r instanceof OpResult.SetDataResult s) {
                text.add("set " + s.getStat().getVersion());
            } else if (r instanceof OpResult.GetDataResult g) {
                text.add("data " + World.text(g.getData()) + " " + g.getStat().getVersion());
            } else if (r instanceof OpResult.GetChildrenResult g) {
                text.add("children " + g.getChildren().stream().sorted().toList());
            } else {
                text.add(r.getClass().getSimpleName() + " " + r.getType());
            }
        }
        return text.toString();
    }

    private static String multi(ZooKeeper zk, Op... ops) throws InterruptedException {
        try {
            return results(zk.multi(List.of(ops)));
        } catch (KeeperException e) {
            return e.code() + " " + (e.getResults() == null ? "no results" : results(e.getResults())) + " " + e.getPath();
        }
    }

    private static Op create(String path) {
        return Op.create(path, World.bytes("x"), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
    }

    private static void refused(World w) throws Exception {
        CuratorFramework c = w.client();
        ZooKeeper zk = c.getZookeeperClient().getZooKeeper();
        c.create().forPath(w.path(""));
        c.create().forPath(w.path("there"));
        w.see("missing parent", multi(zk, create(w.path("a")), create(w.path("no/b")), create(w.path("c"))));
        w.see("exists", multi(zk, create(w.path("a")), create(w.path("there"))));
        w.see("version", multi(zk, Op.setData(w.path("there"), new byte[0], 7), create(w.path("a"))));
        w.see("check", multi(zk, create(w.path("a")), Op.check(w.path("a"), 1)));
        w.see("check of a missing node", multi(zk, Op.check(w.path("none"), 0)));
        w.see("delete twice", multi(zk, Op.delete(w.path("there"), -1), Op.delete(w.path("there"), -1)));
        w.see("not empty", multi(zk, create(w.path("there/x")), Op.delete(w.path("there"), -1)));
        w.see("in order", multi(zk, create(w.path("there/x")), Op.delete(w.path("there/x"), 0), Op.delete(w.path("there"), 0)));
        w.see("no permission", multi(zk, create(w.path("a")), Op.create(w.path("b"), new byte[0], List.of(), CreateMode.PERSISTENT)));
        w.see("nothing", multi(zk));
        w.see("by Curator", w.outcome(() -> c.transaction().forOperations(new CuratorOp[] {
            c.transactionOp().create().forPath(w.path("a")), c.transactionOp().delete().forPath(w.path("none"))})));
        w.tree("nothing changed");
    }

    private static void modes(World w) throws Exception {
        CuratorFramework c = w.client();
        ZooKeeper zk = c.getZookeeperClient().getZooKeeper();
        c.create().forPath(w.path(""));
        for (CreateMode mode : CreateMode.values()) {
            long ttl = mode.isTTL() ? 60_000 : -1;
            w.see(mode.name(), multi(zk, Op.create(w.path(mode.name().toLowerCase() + "-"), World.bytes("x"),
                    ZooDefs.Ids.OPEN_ACL_UNSAFE, mode, ttl)));
        }
        w.see("below ephemeral", multi(zk, create(w.path("ephemeral-/x"))));
        w.see("ephemeral and a child", multi(zk,
                Op.create(w.path("e"), new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL), create(w.path("e/x"))));
        w.see("sequential twice", multi(zk,
                Op.create(w.path("q-"), new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL),
                Op.create(w.path("q-"), new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL)));
        w.tree("made");
    }

    private static void reads(World w) throws Exception {
        CuratorFramework c = w.client();
        ZooKeeper zk = c.getZookeeperClient().getZooKeeper();
        c.create().forPath(w.path(""), World.bytes("folder"));
        c.create().forPath(w.path("a"), World.bytes("1"));
        w.see("good", multi(zk, Op.getData(w.path("a")), Op.getChildren(w.path("")), Op.getChildren(w.path("a"))));
        w.see("one missing", multi(zk, Op.getData(w.path("none")), Op.getData(w.path("a")), Op.getChildren(w.path("none"))));
        w.see("mixed", w.outcome(() -> multi(zk, Op.getData(w.path("a")), create(w.path("b")))));
    }
}
