import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCountReader;

/** An InterProcessSemaphoreV2. It knows no threads; here each returns what it got last. */
final class Semaphore implements Lock {
    private final InterProcessSemaphoreV2 semaphore;
    private final String leases;
    private final ThreadLocal<Deque<Collection<Lease>>> held = ThreadLocal.withInitial(ArrayDeque::new);

    private Semaphore(InterProcessSemaphoreV2 semaphore, String path) {
        this.semaphore = semaphore;
        this.leases = path + "/leases/";
    }

    static Semaphore of(CuratorFramework client, String path, int max) {
        return new Semaphore(new InterProcessSemaphoreV2(client, path, max), path);
    }

    static Semaphore of(CuratorFramework client, String path, SharedCountReader max) {
        return new Semaphore(new InterProcessSemaphoreV2(client, path, max), path);
    }

    @Override
    public List<String> acquire(long waitMillis, int permits) throws Exception {
        Collection<Lease> got = waitMillis < 0
                ? semaphore.acquire(permits)
                : semaphore.acquire(permits, waitMillis, TimeUnit.MILLISECONDS);
        if (got == null) {
            return null;
        }
        held.get().push(got);
        return got.stream().map(lease -> leases + lease.getNodeName()).toList();
    }

    @Override
    public void release() throws Exception {
        semaphore.returnAll(held.get().pop());
    }

    @Override
    public Collection<String> participants() throws Exception {
        return semaphore.getParticipantNodes();
    }
}
