import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.BoundedExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;

/** What one contender uses: one lock, or the two halves of a read/write lock. */
final class Locker {
    /** A part that is acquired and released. */
    interface Part {
        void acquire() throws Exception;

        void release() throws Exception;
    }

    final Part lock;
    final Part write; // or null
    final Weights weights;

    private Locker(Part lock, Part write, Weights weights) {
        this.lock = lock;
        this.write = write;
        this.weights = weights;
    }

    static Locker of(CuratorFramework client, Map<String, String> spec, String path, Weights weights) {
        switch (spec.get("kind")) {
            case "mutex":
                return new Locker(plain(new InterProcessMutex(client, path)), null, weights);
            case "rw":
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                return new Locker(plain(both.readLock()), plain(both.writeLock()), weights);
            case "semaphore":
                int limit = Integer.parseInt(spec.get("limit"));
                return new Locker(permits(new InterProcessSemaphoreV2(client, path, limit),
                        Integer.parseInt(spec.get("permits"))), null, weights);
            case "multi":
                return new Locker(plain(new InterProcessMultiLock(client,
                        List.of(path + "-a", path + "-b", path + "-c"))), null, weights);
            case "counter":
                return new Locker(counter(new DistributedAtomicLong(client, path,
                        new BoundedExponentialBackoffRetry(1, 50, 29))), null, weights);
            case "promoted":
                return new Locker(counter(new DistributedAtomicLong(client, path, new RetryNTimes(3, 1),
                        PromotedToLock.builder().lockPath(path + "-lock").timeout(1, TimeUnit.MINUTES)
                                .retryPolicy(new RetryNTimes(1000, 1)).build())), null, weights);
            default:
                throw new IllegalArgumentException("the peer has no such lock: " + spec.get("kind"));
        }
    }

    /** Acquiring adds 1. What Curator gives up is begun again, and is one cycle. */
    private static Part counter(DistributedAtomicLong number) {
        return new Part() {
            @Override
            public void acquire() throws Exception {
                while (!number.increment().succeeded()) {
                }
            }

            @Override
            public void release() {
            }
        };
    }

    private static Part plain(InterProcessLock lock) {
        return new Part() {
            @Override
            public void acquire() throws Exception {
                lock.acquire();
            }

            @Override
            public void release() throws Exception {
                lock.release();
            }
        };
    }

    private static Part permits(InterProcessSemaphoreV2 semaphore, int permits) {
        return new Part() {
            private Collection<Lease> held;

            @Override
            public void acquire() throws Exception {
                held = semaphore.acquire(permits);
            }

            @Override
            public void release() {
                semaphore.returnAll(held);
            }
        };
    }
}
