import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;

/** An InterProcessMutex or one half of an InterProcessReadWriteLock. */
final class Mutex implements Lock {
    record Pair(Lock read, Lock write) {
    }

    private final InterProcessMutex mutex;
    private final boolean revocable;
    private final Semaphore revocations = new Semaphore(0);

    private Mutex(InterProcessMutex mutex, boolean revocable) {
        this.mutex = mutex;
        this.revocable = revocable;
    }

    static Mutex on(CuratorFramework client, String path, boolean revocable) {
        return new Mutex(new InterProcessMutex(client, path), revocable);
    }

    /** The halves of one lock: a thread that writes may go on to read. */
    static Pair pair(CuratorFramework client, String path) {
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        return new Pair(new Mutex(both.readLock(), false), new Mutex(both.writeLock(), false));
    }

    @Override
    public List<String> acquire(long waitMillis, int permits) throws Exception {
        Lock.one(permits);
        if (revocable) { // Curator forgets the listener at every release
            revocations.drainPermits();
            mutex.makeRevocable(m -> revocations.release());
        }
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
        return mutex.getParticipantNodes();
    }

    @Override
    public boolean awaitRevocation(long millis) throws Exception {
        return revocations.tryAcquire(millis, TimeUnit.MILLISECONDS);
    }

    @Override
    public InterProcessLock member() {
        return mutex;
    }

    /** Curator shows the path to subclasses only. */
    @Override
    public List<String> nodes() throws Exception {
        Method path = InterProcessMutex.class.getDeclaredMethod("getLockPath");
        path.setAccessible(true);
        return List.of((String) path.invoke(mutex));
    }
}
