import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.zookeeper.CreateMode;

/** Containers and TTL nodes, on a server that sweeps them often. */
final class Sweeping {
    static void add(Steps steps) {
        steps.add("sweep-containers", Sweeping::containers);
        steps.add("sweep-ttl", Sweeping::ttl);
        steps.add("sweep-recipes", Sweeping::recipes);
        steps.add("sweep-under-load", Sweeping::load);
    }

    private static boolean gone(World w, String path) throws Exception {
        return w.witness().checkExists().forPath(path) == null;
    }

    private static void containers(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        c.create().withMode(CreateMode.CONTAINER).forPath(w.path("unused"));
        c.create().withMode(CreateMode.CONTAINER).forPath(w.path("used"));
        c.create().withMode(CreateMode.CONTAINER).forPath(w.path("busy"));
        c.create().forPath(w.path("plain"));
        c.create().creatingParentContainersIfNeeded().forPath(w.path("x/y/z"));
        for (String name : new String[] {"used", "busy", "plain"}) {
            c.create().forPath(w.path(name + "/child"));
        }
        java.util.concurrent.CountDownLatch told = new java.util.concurrent.CountDownLatch(1);
        c.checkExists().usingWatcher((org.apache.zookeeper.Watcher) e -> told.countDown()).forPath(w.path("used"));
        c.delete().forPath(w.path("used/child"));
        c.delete().forPath(w.path("plain/child"));
        c.delete().forPath(w.path("x/y/z"));
        w.await("the sweep of used", () -> gone(w, w.path("used")));
        w.await("the sweep of x", () -> gone(w, w.path("x")));
        w.check(told.await(10, TimeUnit.SECONDS), "the watch did not fire");
        w.tree("swept");
        c.delete().forPath(w.path("busy/child"));
        w.await("the sweep of busy", () -> gone(w, w.path("busy")));
        c.create().withMode(CreateMode.CONTAINER).forPath(w.path("used"));
        w.see("counts anew", c.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath(w.path("used/s-")));
    }

    private static void ttl(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        c.create().withTtl(3000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(w.path("short"));
        c.create().withTtl(60_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(w.path("long"));
        c.create().withTtl(3000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(w.path("parent"));
        c.create().forPath(w.path("parent/child"));
        w.see("sequential", c.create().withTtl(3000).withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL).forPath(w.path("s-")));
        PersistentTtlNode kept = w.closing(new PersistentTtlNode(w.client(), w.path("kept"), 3000, World.bytes("x")));
        kept.start();
        w.check(kept.waitForInitialCreate(10, TimeUnit.SECONDS), "not created");
        w.await("the end of the short one", () -> gone(w, w.path("short")));
        // Without a touch it would stay: a container that never had a child is not swept.
        w.await("a touch of the kept one", () -> !gone(w, w.path("kept/touch")));
        w.await("the end of the sequential one", () -> w.children(w.path("")).stream().noneMatch(n -> n.startsWith("s-")));
        w.see("left", w.children(w.path("")));
        kept.close();
        w.await("the end of the kept one", () -> gone(w, w.path("kept")));
        c.delete().forPath(w.path("parent/child"));
        w.await("the end of the parent", () -> gone(w, w.path("parent")));
        w.see("ttl 0", w.outcome(() -> c.create().withTtl(0).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(w.path("zero"))));
        w.see("ttl too long", w.outcome(() -> c.create().withTtl(1L << 50).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(w.path("ages"))));
    }

    /** What is left of recipes are the folders that are no containers. */
    private static void recipes(World w) throws Exception {
        CuratorFramework c = w.client();
        c.create().forPath(w.path(""));
        InterProcessMutex mutex = new InterProcessMutex(c, w.path("mutex/a"));
        mutex.acquire();
        mutex.release();
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(c, w.path("rw/a"));
        lock.readLock().acquire();
        lock.readLock().release();
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(c, w.path("semaphore/a"), 1);
        semaphore.returnLease(semaphore.acquire());
        SimpleDistributedQueue queue = new SimpleDistributedQueue(c, w.path("queue/a"));
        queue.offer(World.bytes("x"));
        queue.poll();
        DistributedBarrier barrier = new DistributedBarrier(c, w.path("barrier/a"));
        barrier.setBarrier();
        barrier.removeBarrier();
        for (String name : new String[] {"mutex", "rw", "semaphore", "queue", "barrier"}) {
            w.await("the sweep of " + name, () -> gone(w, w.path(name)));
        }
        w.see("left", w.children(w.path("")));
    }

    /** Locks whose folder is swept away under them go on. */
    private static void load(World w) throws Exception {
        InterProcessMutex one = new InterProcessMutex(w.client(), w.path("lock"));
        for (int round = 0; round < 3; round++) {
            one.acquire();
            w.see("held", w.ask("mask", w.children(w.path("lock")).get(0)));
            one.release();
            w.await("the sweep of the folder and of the one above", () -> gone(w, w.path("")));
        }
    }
}
