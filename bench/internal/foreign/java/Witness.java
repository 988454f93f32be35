import java.util.concurrent.atomic.AtomicLong;

/** Knows how much of one lock is held, whatever the lock believes. */
final class Witness {
    final AtomicLong overlaps = new AtomicLong();
    volatile long released; // when release was called last
    volatile boolean everReleased;
    private final AtomicLong inside = new AtomicLong();
    private final long limit;

    Witness(long limit) {
        this.limit = limit;
    }

    void enter(long weight) {
        if (inside.addAndGet(weight) > limit) {
            overlaps.incrementAndGet();
        }
    }

    void leave(long weight) {
        inside.addAndGet(-weight);
    }
}
