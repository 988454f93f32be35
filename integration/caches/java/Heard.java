import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** What a listener has heard, in order. */
final class Heard {
    private static final int WAIT_SECONDS = 30;

    private final List<String> all = new ArrayList<>();
    private boolean blocked;

    /** Notes an event, and keeps the listener's thread as long as it is to be blocked. */
    synchronized void of(String event) {
        all.add(lower(event));
        notifyAll();
        try {
            while (blocked) {
                wait();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The type in lower case, the path as it is. */
    private static String lower(String event) {
        int space = event.indexOf(' ');
        return space < 0 ? event.toLowerCase(java.util.Locale.ROOT)
                : event.substring(0, space).toLowerCase(java.util.Locale.ROOT) + event.substring(space);
    }

    synchronized void await(String event) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (!all.contains(event)) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (left <= 0) {
                throw new IllegalStateException("no " + event + " in " + WAIT_SECONDS + " s, but " + all);
            }
            wait(left);
        }
    }

    synchronized void block() {
        blocked = true;
    }

    synchronized void release() {
        blocked = false;
        notifyAll();
    }

    @Override
    public synchronized String toString() {
        return String.join(", ", all);
    }
}
