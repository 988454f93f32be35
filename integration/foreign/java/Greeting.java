import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.listen.StandardListenerManager;
import org.apache.curator.framework.listen.UnaryListenerManager;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.ConnectionStateListener;
import org.apache.curator.framework.state.ConnectionStateListenerManagerFactory;

/**
 * Curator's own manager of listeners, which can also be waited for: a client is connected before its listeners
 * are told, and a recipe that is started in between reads everything once more when the word comes.
 */
final class Greeting implements ConnectionStateListenerManagerFactory, UnaryListenerManager<ConnectionStateListener> {
    private final UnaryListenerManager<ConnectionStateListener> listeners = StandardListenerManager.standard();
    private final CountDownLatch over = new CountDownLatch(1);
    private volatile boolean connected;

    Greeting() {
        listeners.addListener((client, state) -> connected |= state == ConnectionState.CONNECTED);
    }

    /** Waits until all listeners have been told of the first connection. */
    boolean await(long time, TimeUnit unit) throws InterruptedException {
        return over.await(time, unit);
    }

    @Override
    public UnaryListenerManager<ConnectionStateListener> newManager(CuratorFramework client) {
        return this;
    }

    @Override
    public void forEach(Consumer<ConnectionStateListener> tell) {
        listeners.forEach(tell);
        if (connected) {
            over.countDown();
        }
    }

    @Override
    public void addListener(ConnectionStateListener listener) {
        listeners.addListener(listener);
    }

    @Override
    public void addListener(ConnectionStateListener listener, Executor executor) {
        listeners.addListener(listener, executor);
    }

    @Override
    public void removeListener(ConnectionStateListener listener) {
        listeners.removeListener(listener);
    }

    @Override
    public void clear() {
        listeners.clear();
    }

    @Override
    public int size() {
        return listeners.size();
    }
}
