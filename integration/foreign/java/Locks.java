import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.zookeeper.CreateMode;

/** Mutexes and read/write locks. */
final class Locks {
    static void add(Steps steps) {
        steps.add("mutex", Locks::mutex);
        steps.add("mutex-line", Locks::line);
        steps.add("mutex-load", Locks::load);
        steps.add("mutex-revoked", Locks::revoked);
        steps.add("mutex-robbed", Locks::robbed);
        steps.add("multi-lock", Locks::multi);
        steps.add("rw-shared", Locks::shared);
        steps.add("rw-downgrade", Locks::downgrade);
        steps.add("rw-upgrade", Locks::upgrade);
        steps.add("rw-line", Locks::readWriteLine);
    }

    private static void mutex(World w) throws Exception {
        String path = w.path("lock");
        InterProcessMutex one = new InterProcessMutex(w.client(), path);
        InterProcessMutex two = new InterProcessMutex(w.client(), path);
        one.acquire();
        one.acquire();
        w.tree("held twice");
        w.check(!two.acquire(100, TimeUnit.MILLISECONDS), "a held lock was acquired");
        w.tree("after a try in vain");
        w.watches("left by the try", 1);
        ExecutorService thread = w.thread();
        Future<?> waiting = thread.submit(() -> {
            two.acquire();
            return null;
        });
        w.awaitChildren(path, 2);
        w.watches("one waits", 1);
        w.tree("one waits");
        w.see("participants", one.getParticipantNodes().size());
        w.see("release by another thread", w.outcome(() -> {
            two.release();
            return "ok";
        }));
        one.release();
        w.check(!waiting.isDone() && one.isOwnedByCurrentThread(), "released by half");
        one.release();
        waiting.get(10, TimeUnit.SECONDS);
        w.tree("handed over");
        w.see("second release", w.outcome(() -> {
            one.release();
            return "ok";
        }));
        thread.submit(() -> {
            two.release();
            return null;
        }).get();
        w.see("children", w.children(path));
        w.watches("none", 0);
    }

    /** Five wait in line and get the lock in its order. */
    private static void line(World w) throws Exception {
        String path = w.path("lock");
        InterProcessMutex first = new InterProcessMutex(w.client(), path);
        first.acquire();
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            int number = i;
            InterProcessMutex lock = new InterProcessMutex(w.client(), path);
            all.add(w.thread().submit(() -> {
                lock.acquire();
                order.add(number);
                lock.release();
                return null;
            }));
            w.awaitChildren(path, i + 2);
        }
        w.watches("each its predecessor", 5);
        w.tree("line");
        w.witness().create().withMode(CreateMode.PERSISTENT).forPath(path + "/foreign");
        first.release();
        for (Future<?> f : all) {
            f.get(10, TimeUnit.SECONDS);
        }
        w.see("order", order);
    }

    private static void load(World w) throws Exception {
        String path = w.path("lock");
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger done = new AtomicInteger();
        List<Future<?>> all = new ArrayList<>();
        for (int c = 0; c < 4; c++) {
            CuratorFramework client = w.client();
            for (int t = 0; t < 2; t++) {
                InterProcessMutex lock = new InterProcessMutex(client, path);
                all.add(w.thread().submit(() -> {
                    for (int round = 0; round < 15; round++) {
                        lock.acquire();
                        w.check(inside.incrementAndGet() == 1, "two holders");
                        done.incrementAndGet();
                        inside.decrementAndGet();
                        lock.release();
                    }
                    return null;
                }));
            }
        }
        for (Future<?> f : all) {
            f.get(30, TimeUnit.SECONDS);
        }
        w.see("rounds", done);
        w.see("left", w.children(path));
        w.watches("none", 0);
    }

    private static void revoked(World w) throws Exception {
        String path = w.path("lock");
        InterProcessMutex lock = new InterProcessMutex(w.client(), path);
        AtomicInteger told = new AtomicInteger();
        lock.makeRevocable(m -> told.incrementAndGet());
        lock.acquire();
        w.watches("on the own node", 1);
        w.tree("revocable");
        Revoker.attemptRevoke(w.witness(), path + "/" + w.children(path).get(0));
        w.await("revocation", () -> told.get() == 1);
        w.tree("revoked");
        lock.release();
        Revoker.attemptRevoke(w.witness(), path + "/gone");
    }

    /** Somebody deletes the holder's node: Curator's holder does not notice, the next one gets the lock. */
    private static void robbed(World w) throws Exception {
        String path = w.path("lock");
        InterProcessMutex one = new InterProcessMutex(w.client(), path);
        InterProcessMutex two = new InterProcessMutex(w.client(), path);
        one.acquire();
        ExecutorService thread = w.thread();
        Future<?> waiting = thread.submit(() -> {
            two.acquire();
            return null;
        });
        w.awaitChildren(path, 2);
        w.watches("one waits", 1);
        String held = w.children(path).stream().filter(n -> n.endsWith("0000000000")).findFirst().orElseThrow();
        w.witness().delete().forPath(path + "/" + held);
        waiting.get(10, TimeUnit.SECONDS);
        w.see("the first thinks it holds", one.isAcquiredInThisProcess());
        w.see("its release", w.outcome(() -> {
            one.release();
            return "ok";
        }));
        thread.submit(() -> {
            two.release();
            return null;
        }).get();
    }

    private static void multi(World w) throws Exception {
        CuratorFramework client = w.client();
        List<String> paths = List.of(w.path("a"), w.path("b"), w.path("c"));
        InterProcessMutex taken = new InterProcessMutex(w.client(), w.path("b"));
        taken.acquire();
        InterProcessMultiLock lock = new InterProcessMultiLock(client, paths);
        w.check(!lock.acquire(100, TimeUnit.MILLISECONDS), "acquired though a part is taken");
        w.tree("a part was taken");
        taken.release();
        w.check(lock.acquire(10, TimeUnit.SECONDS), "not acquired");
        w.tree("all held");
        lock.release();
    }

    private static void shared(World w) throws Exception {
        String path = w.path("lock");
        InterProcessReadWriteLock one = new InterProcessReadWriteLock(w.client(), path, World.bytes("payload"));
        InterProcessReadWriteLock two = new InterProcessReadWriteLock(w.client(), path);
        InterProcessReadWriteLock three = new InterProcessReadWriteLock(w.client(), path);
        one.readLock().acquire();
        two.readLock().acquire();
        w.tree("two read");
        ExecutorService writer = w.thread();
        Future<?> writing = writer.submit(() -> {
            three.writeLock().acquire();
            return null;
        });
        w.awaitChildren(path, 3);
        w.watches("the writer waits", 1);
        w.check(!one.writeLock().acquire(50, TimeUnit.MILLISECONDS), "two writers");
        ExecutorService reader = w.thread();
        Future<?> late = reader.submit(() -> {
            one.readLock().acquire();
            return null;
        });
        w.awaitChildren(path, 4);
        w.watches("a late reader waits for the writer", 2);
        w.tree("writer and late reader wait");
        one.readLock().release();
        two.readLock().release();
        writing.get(10, TimeUnit.SECONDS);
        w.check(!late.isDone(), "the reader passed the writer");
        writer.submit(() -> {
            three.writeLock().release();
            return null;
        }).get();
        late.get(10, TimeUnit.SECONDS);
        w.tree("late reader");
        w.see("participants", one.readLock().getParticipantNodes().size() + " " + one.writeLock().getParticipantNodes().size());
        reader.submit(() -> {
            one.readLock().release();
            return null;
        }).get();
    }

    private static void downgrade(World w) throws Exception {
        String path = w.path("lock");
        InterProcessReadWriteLock one = new InterProcessReadWriteLock(w.client(), path);
        InterProcessReadWriteLock two = new InterProcessReadWriteLock(w.client(), path);
        one.writeLock().acquire();
        one.readLock().acquire();
        w.tree("write and read");
        w.check(!w.thread().submit(() -> one.readLock().acquire(50, TimeUnit.MILLISECONDS)).get(), "another thread reads beside the writer");
        one.writeLock().release();
        w.tree("downgraded");
        w.check(two.readLock().acquire(10, TimeUnit.SECONDS), "no second reader after the downgrade");
        w.check(!two.writeLock().acquire(50, TimeUnit.MILLISECONDS), "a writer beside readers");
        two.readLock().release();
        one.readLock().release();
        w.check(two.writeLock().acquire(10, TimeUnit.SECONDS), "no writer at the end");
        two.writeLock().release();
    }

    private static void upgrade(World w) throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(w.client(), w.path("lock"));
        lock.readLock().acquire();
        w.see("upgrade", lock.writeLock().acquire(100, TimeUnit.MILLISECONDS));
        w.tree("after the try");
        lock.readLock().release();
        w.see("write", lock.writeLock().acquire(10, TimeUnit.SECONDS));
        lock.writeLock().release();
    }

    /** Readers and writers get the lock in the order of the line. */
    private static void readWriteLine(World w) throws Exception {
        String path = w.path("lock");
        InterProcessReadWriteLock first = new InterProcessReadWriteLock(w.client(), path);
        first.writeLock().acquire();
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        List<Future<?>> all = new ArrayList<>();
        String kinds = "WRWRRW";
        for (int i = 0; i < kinds.length(); i++) {
            String kind = kinds.substring(i, i + 1);
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(w.client(), path);
            InterProcessMutex half = kind.equals("R") ? lock.readLock() : lock.writeLock();
            all.add(w.thread().submit(() -> {
                half.acquire();
                order.add(kind);
                half.release();
                return null;
            }));
            w.awaitChildren(path, i + 2);
        }
        w.watches("all wait", kinds.length());
        w.tree("line");
        first.writeLock().release();
        for (Future<?> f : all) {
            f.get(10, TimeUnit.SECONDS);
        }
        w.see("order", order);
    }
}
