import java.util.Collection;
import java.util.List;
import org.apache.curator.framework.recipes.locks.InterProcessLock;

/** What can be acquired. */
interface Lock {
    /** Waits at most this long, for ever if negative; null when the time is up, else its nodes. */
    List<String> acquire(long waitMillis, int permits) throws Exception;

    /** Undoes the last acquire of this thread. */
    void release() throws Exception;

    Collection<String> participants() throws Exception;

    /** Whether somebody asked for the lock, in at most this time; forgotten at the next acquire. */
    default boolean awaitRevocation(long millis) throws Exception {
        throw new UnsupportedOperationException("not revocable");
    }

    /** As a member of an InterProcessMultiLock. */
    default InterProcessLock member() {
        throw new UnsupportedOperationException("not a member of a multi lock");
    }

    /** The nodes that the calling thread holds with member(). */
    default List<String> nodes() throws Exception {
        throw new UnsupportedOperationException("not a member of a multi lock");
    }

    static void one(int permits) {
        if (permits != 1) {
            throw new IllegalArgumentException("has one permit, not " + permits);
        }
    }
}
