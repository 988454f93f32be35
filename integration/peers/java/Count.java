import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;

/** A SharedCount. */
final class Count implements SharedCountListener {
    final SharedCount shared;

    Count(CuratorFramework client, String path, int seed) throws Exception {
        shared = new SharedCount(client, path, seed);
        shared.addListener(this);
        shared.start();
    }

    /** The version and the value that Curator saw last. */
    String get() {
        VersionedValue<Integer> now = shared.getVersionedValue();
        return now.getVersion() + " " + now.getValue();
    }

    void set(int value) throws Exception {
        shared.setCount(value);
    }

    /** What the value was before it was set; null when it was not. */
    String trySet(int value) throws Exception {
        VersionedValue<Integer> before = shared.getVersionedValue();
        return shared.trySetCount(before, value) ? before.getVersion() + " " + before.getValue() : null;
    }

    /** Whether a listener hears of this value in at most this time. */
    synchronized boolean await(int value, long millis) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (shared.getCount() != value) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (left <= 0) {
                return false;
            }
            wait(left);
        }
        return true;
    }

    @Override
    public synchronized void countHasChanged(SharedCountReader count, int value) {
        notifyAll();
    }

    @Override
    public void stateChanged(CuratorFramework client, ConnectionState state) {
    }
}
