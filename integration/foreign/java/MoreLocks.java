import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** Semaphores and the mutex made of one. */
final class MoreLocks {
    static void add(Steps steps) {
        steps.add("semaphore", MoreLocks::semaphore);
        steps.add("semaphore-count", MoreLocks::count);
        steps.add("semaphore-load", MoreLocks::load);
        steps.add("semaphore-mutex", MoreLocks::mutex);
    }

    private static void semaphore(World w) throws Exception {
        String path = w.path("semaphore");
        CuratorFramework a = w.client();
        CuratorFramework b = w.client();
        InterProcessSemaphoreV2 one = new InterProcessSemaphoreV2(a, path, 3);
        InterProcessSemaphoreV2 two = new InterProcessSemaphoreV2(b, path, 3);
        one.setNodeData(World.bytes("mine"));
        Collection<Lease> pair = one.acquire(2);
        Lease third = two.acquire();
        w.tree("all leased");
        w.see("data", World.text(pair.iterator().next().getData()));
        w.see("more", two.acquire(100, TimeUnit.MILLISECONDS));
        w.see("two more", two.acquire(2, 100, TimeUnit.MILLISECONDS));
        w.tree("after tries in vain");
        Future<Lease> waiting = w.thread().submit(() -> two.acquire());
        w.awaitChildren(path + "/leases", 4);
        w.tree("one waits");
        one.returnAll(pair);
        Lease fourth = waiting.get(10, TimeUnit.SECONDS);
        w.see("participants", one.getParticipantNodes().size());
        w.tree("handed over");
        two.returnLease(third);
        two.returnLease(fourth);
        w.see("children", w.children(path));
    }

    private static void count(World w) throws Exception {
        CuratorFramework client = w.client();
        SharedCount count = w.closing(new SharedCount(client, w.path("count"), 1));
        count.start();
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, w.path("semaphore"), count);
        Lease one = semaphore.acquire(10, TimeUnit.SECONDS);
        Future<Lease> waiting = w.thread().submit(() -> semaphore.acquire());
        w.awaitChildren(w.path("semaphore/leases"), 2);
        w.check(!waiting.isDone(), "more leases than the count");
        count.setCount(2);
        Lease two = waiting.get(10, TimeUnit.SECONDS);
        w.tree("two leased");
        semaphore.returnLease(one);
        semaphore.returnLease(two);
    }

    private static void load(World w) throws Exception {
        String path = w.path("semaphore");
        java.util.concurrent.atomic.AtomicInteger inside = new java.util.concurrent.atomic.AtomicInteger();
        List<Future<?>> all = new ArrayList<>();
        for (int c = 0; c < 4; c++) {
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(w.client(), path, 2);
            all.add(w.thread().submit(() -> {
                for (int round = 0; round < 10; round++) {
                    Lease lease = semaphore.acquire();
                    w.check(inside.incrementAndGet() <= 2, "too many leases");
                    inside.decrementAndGet();
                    semaphore.returnLease(lease);
                }
                return null;
            }));
        }
        for (Future<?> f : all) {
            f.get(30, TimeUnit.SECONDS);
        }
        w.see("left", w.children(path + "/leases"));
    }

    private static void mutex(World w) throws Exception {
        String path = w.path("lock");
        InterProcessSemaphoreMutex one = new InterProcessSemaphoreMutex(w.client(), path);
        InterProcessSemaphoreMutex two = new InterProcessSemaphoreMutex(w.client(), path);
        one.acquire();
        w.tree("held");
        w.check(!one.acquire(100, TimeUnit.MILLISECONDS), "entered twice");
        w.check(!two.acquire(100, TimeUnit.MILLISECONDS), "two holders");
        ExecutorService thread = w.thread();
        Future<?> waiting = thread.submit(() -> {
            two.acquire();
            return null;
        });
        w.awaitChildren(path + "/leases", 2);
        one.release();
        waiting.get(10, TimeUnit.SECONDS);
        w.tree("handed over");
        two.release(); // by another thread, which this lock allows
        w.see("second release", w.outcome(() -> {
            two.release();
            return "ok";
        }));
    }
}
