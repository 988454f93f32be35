import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;

/** A LeaderLatch: to acquire is to lead, and to release is to close. */
final class Latch implements Lock {
    private static final int POLL_MILLIS = 20;

    private final CuratorFramework client;
    private final String path;
    private volatile LeaderLatch latch;

    Latch(CuratorFramework client, String path) {
        this.client = client;
        this.path = path;
    }

    @Override
    public synchronized List<String> acquire(long waitMillis, int permits) throws Exception {
        Lock.one(permits);
        LeaderLatch made = new LeaderLatch(client, path);
        made.start();
        if (waitMillis < 0) {
            made.await();
        } else if (!made.await(waitMillis, TimeUnit.MILLISECONDS)) {
            made.close();
            return null;
        }
        String node = made.getOurPath();
        if (node == null) {
            made.close();
            throw new IllegalStateException("the leadership is lost again");
        }
        latch = made;
        return List.of(node);
    }

    /** What the latch believes, also while another thread waits for it. */
    boolean leads() {
        LeaderLatch now = latch;
        return now != null && now.hasLeadership();
    }

    /** Returns when the node is gone: close deletes it in the background. */
    @Override
    public synchronized void release() throws Exception {
        String node = latch.getOurPath();
        latch.close();
        latch = null;
        while (client.checkExists().forPath(node) != null) {
            Thread.sleep(POLL_MILLIS);
        }
    }

    @Override
    public Collection<String> participants() throws Exception {
        return client.getChildren().forPath(path);
    }
}
