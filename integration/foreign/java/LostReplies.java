import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;

/** The server has done it and the client does not hear of it. */
final class LostReplies {
    static void add(Steps steps) {
        steps.add("lost-create", LostReplies::create);
        steps.add("lost-member", LostReplies::member);
        steps.add("lost-list", LostReplies::list);
        steps.add("lost-release", LostReplies::release);
        steps.add("lost-lease", LostReplies::lease);
        steps.add("lost-latch", LostReplies::latch);
        steps.add("lost-write", LostReplies::write);
    }

    private static void create(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        w.ask("lose", "create2", w.path("plain"));
        w.see("plain", w.outcome(() -> c.create().forPath(w.path("plain"))));
        w.ask("lose", "create2", w.path("idempotent"));
        w.see("idempotent", w.outcome(() -> c.create().idempotent().forPath(w.path("idempotent"))));
        w.ask("lose", "create2", w.path("_c_"));
        w.see("protected", w.ask("mask", c.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(w.path("p-"))));
        w.ask("lose", "createContainer", w.path("container"));
        w.see("container", w.outcome(() -> c.create().withMode(CreateMode.CONTAINER).forPath(w.path("container"))));
        w.ask("drop", "create2", w.path("dropped"));
        w.see("dropped before", w.outcome(() -> c.create().forPath(w.path("dropped"))));
        w.tree("made");
    }

    private static void member(World w) throws Exception {
        InterProcessMutex lock = new InterProcessMutex(w.client(), w.path("lock"));
        lock.acquire();
        lock.release();
        w.ask("lose", "create2", w.path("lock/"));
        lock.acquire();
        w.tree("held");
        lock.release();
        w.see("left", w.children(w.path("lock")));
    }

    private static void list(World w) throws Exception {
        InterProcessMutex lock = new InterProcessMutex(w.client(), w.path("lock"));
        w.ask("lose", "getChildren2", w.path("lock"));
        lock.acquire();
        w.tree("held");
        lock.release();
    }

    private static void release(World w) throws Exception {
        InterProcessMutex lock = new InterProcessMutex(w.client(), w.path("lock"));
        lock.acquire();
        w.ask("lose", "delete", w.path("lock/"));
        lock.release();
        w.see("left", w.children(w.path("lock")));
    }

    private static void lease(World w) throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(w.client(), w.path("semaphore"), 1);
        w.ask("lose", "create2", w.path("semaphore/leases/"));
        Lease lease = semaphore.acquire(20, TimeUnit.SECONDS);
        w.check(lease != null, "no lease");
        w.tree("leased");
        w.ask("lose", "delete", w.path("semaphore/leases/"));
        semaphore.returnLease(lease);
        w.awaitChildren(w.path("semaphore/leases"), 0);
    }

    private static void latch(World w) throws Exception {
        w.loose(); // the retried create and the reset upon the reconnection may both make a node
        CuratorFramework c = w.client();
        LeaderLatch latch = new LeaderLatch(c, w.path("latch"), "one");
        w.witness().create().creatingParentsIfNeeded().forPath(w.path("latch"));
        w.ask("lose", "create2", w.path("latch/"));
        latch.start();
        w.check(latch.await(15, TimeUnit.SECONDS), "no leader");
        w.await("one node", () -> w.children(w.path("latch")).size() == 1);
        latch.close();
        c.close(); // with the session ends a node that was made again
        w.awaitChildren(w.path("latch"), 0);
    }

    /** A retried write that had happened: what Curator makes of it must be the same everywhere. */
    private static void write(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""), World.bytes("0"));
        w.ask("lose", "setData", w.path(""));
        w.see("with a version", w.outcome(() -> c.setData().withVersion(0).forPath(w.path(""), World.bytes("1")).getVersion()));
        w.ask("lose", "setData", w.path(""));
        w.see("without", w.outcome(() -> c.setData().forPath(w.path(""), World.bytes("2")).getVersion()));
        DistributedAtomicLong number = new DistributedAtomicLong(c, w.path("long"), new RetryNTimes(5, 10));
        number.increment();
        w.ask("lose", "setData", w.path("long"));
        w.see("increment", number.increment().postValue());
        c.create().forPath(w.path("gone"));
        w.ask("lose", "multi", w.path("gone"));
        w.see("transaction", w.outcome(() -> c.transaction().forOperations(c.transactionOp().delete().forPath(w.path("gone"))).size()));
        w.tree("written");
    }
}
