import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;

/** One Curator client. */
final class Client {
    private static final int WAIT_SECONDS = 30;
    private static final int POLL_MILLIS = 20;

    final CuratorFramework curator;

    Client(String address, int timeoutMillis) throws Exception {
        curator = CuratorFrameworkFactory.builder()
                .connectString(address)
                .sessionTimeoutMs(timeoutMillis)
                .connectionTimeoutMs(Math.min(timeoutMillis, 5000))
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .build();
        curator.start();
        if (!curator.blockUntilConnected(WAIT_SECONDS, TimeUnit.SECONDS)) {
            curator.close();
            throw new IllegalStateException("no connection to " + address + " in " + WAIT_SECONDS + " s");
        }
    }

    void close() {
        curator.close();
    }

    void revoke(String path) throws Exception {
        Revoker.attemptRevoke(curator, path);
    }

    /** Waits for a session: a handle that is new has none, and one that is lost throws. */
    String session() throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        for (;;) {
            String why = "it has none yet";
            try {
                long id = curator.getZookeeperClient().getZooKeeper().getSessionId();
                if (id != 0) {
                    return "0x" + Long.toHexString(id);
                }
            } catch (KeeperException e) {
                why = e.toString();
            }
            if (System.nanoTime() > end) {
                throw new IllegalStateException("no session in " + WAIT_SECONDS + " s: " + why);
            }
            Thread.sleep(POLL_MILLIS);
        }
    }
}
