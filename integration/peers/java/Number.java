import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.retry.RetryNTimes;

/** A DistributedAtomicLong, and one that hands out its numbers in blocks of ten. */
final class Number {
    private static final int BLOCK = 10;
    private static final int PAUSE_MILLIS = 2;

    private final DistributedAtomicLong number;
    private final CachedAtomicLong cached;

    /** After so many tries it waits for the mutex at lock, if that is not null. */
    Number(CuratorFramework client, String path, int tries, String lock) {
        RetryNTimes policy = new RetryNTimes(tries, PAUSE_MILLIS);
        PromotedToLock promoted = lock == null ? null : PromotedToLock.builder().lockPath(lock)
                .timeout(1, TimeUnit.MINUTES).retryPolicy(new RetryNTimes(1000, PAUSE_MILLIS)).build();
        number = new DistributedAtomicLong(client, path, policy, promoted);
        cached = new CachedAtomicLong(number, BLOCK);
    }

    /** The value before and after; null when it was not added. */
    String add(long delta) throws Exception {
        return text(number.add(delta));
    }

    synchronized String next() throws Exception {
        return text(cached.next());
    }

    String get() throws Exception {
        return text(number.get());
    }

    private static String text(AtomicValue<Long> value) {
        if (!value.succeeded()) {
            return null;
        }
        return value.preValue() + " " + value.postValue() + " " + (value.getStats() == null ? 0 : value.getStats().getPromotedLockTries());
    }
}
