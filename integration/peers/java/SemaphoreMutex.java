import java.lang.reflect.Field;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.Lease;

/** An InterProcessSemaphoreMutex, for one thread at a time. */
final class SemaphoreMutex implements Lock {
    private final InterProcessSemaphoreMutex mutex;
    private final CuratorFramework client;
    private final String leases;

    SemaphoreMutex(CuratorFramework client, String path) {
        this.mutex = new InterProcessSemaphoreMutex(client, path);
        this.client = client;
        this.leases = path + "/leases";
    }

    @Override
    public List<String> acquire(long waitMillis, int permits) throws Exception {
        Lock.one(permits);
        if (waitMillis < 0) {
            mutex.acquire();
        } else if (!mutex.acquire(waitMillis, TimeUnit.MILLISECONDS)) {
            return null;
        }
        return nodes();
    }

    @Override
    public void release() throws Exception {
        mutex.release();
    }

    @Override
    public Collection<String> participants() throws Exception {
        return client.getChildren().forPath(leases);
    }

    @Override
    public InterProcessLock member() {
        return mutex;
    }

    /** Curator keeps the lease to itself. */
    @Override
    public List<String> nodes() throws Exception {
        Field lease = InterProcessSemaphoreMutex.class.getDeclaredField("lease");
        lease.setAccessible(true);
        return List.of(leases + "/" + ((Lease) lease.get(mutex)).getNodeName());
    }
}
