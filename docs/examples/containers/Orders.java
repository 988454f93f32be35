import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Counts one order under a lock of Curator's, at the servers of the first argument. */
public final class Orders {
    public static void main(String[] args) throws Exception {
        CuratorFramework curator = CuratorFrameworkFactory.builder()
                .connectString(args[0])
                .sessionTimeoutMs(10_000)
                .retryPolicy(new ExponentialBackoffRetry(100, 10))
                .ensembleTracker(false) // it would take the addresses inside the containers
                .build();
        curator.start();
        InterProcessMutex lock = new InterProcessMutex(curator, "/locks/orders");
        if (!lock.acquire(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the lock was not free in 30 s");
        }
        int orders = Integer.parseInt(new String(curator.getData().forPath("/orders"))) + 1;
        curator.setData().forPath("/orders", Integer.toString(orders).getBytes());
        lock.release();
        curator.close();
        System.out.println(orders);
    }
}
