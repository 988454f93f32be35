import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.KeeperException;

/** What one step works with: clients, threads, a folder of its own, and ways to look and to say. */
final class World {
    static final int SESSION_MILLIS = 10_000;
    private static final int WAIT_SECONDS = 15;
    private static final int POLL_MILLIS = 5;

    private final Steps steps;
    private final String name;
    private final String proxied;
    private final String direct;
    private final Deque<AutoCloseable> open = new ArrayDeque<>();
    private CuratorFramework witness;

    World(Steps steps, String name, String proxied, String direct) {
        this.steps = steps;
        this.name = name;
        this.proxied = proxied;
        this.direct = direct;
    }

    /** A connected client behind the proxy. */
    CuratorFramework client() throws Exception {
        return client(SESSION_MILLIS);
    }

    CuratorFramework client(int sessionMillis) throws Exception {
        return start(builder(sessionMillis));
    }

    CuratorFrameworkFactory.Builder builder(int sessionMillis) {
        return CuratorFrameworkFactory.builder().connectString(proxied).sessionTimeoutMs(sessionMillis)
                .connectionTimeoutMs(sessionMillis).retryPolicy(new RetryNTimes(50, 100));
    }

    /** Returns a client once all its listeners know of its connection, so that no recipe started later hears of it. */
    CuratorFramework start(CuratorFrameworkFactory.Builder builder) throws Exception {
        Greeting greeting = new Greeting();
        CuratorFramework client = builder.connectionStateListenerManagerFactory(greeting).build();
        client.start();
        closing(client);
        check(greeting.await(WAIT_SECONDS, TimeUnit.SECONDS), "no connection");
        return client;
    }

    /** A client that no fault reaches, to look at the server and to act as somebody else. */
    synchronized CuratorFramework witness() throws Exception {
        if (witness == null) {
            witness = start(builder(SESSION_MILLIS).connectString(direct));
        }
        return witness;
    }

    String proxied() {
        return proxied;
    }

    /** The path below this step's folder. */
    String path(String rest) {
        return "/" + name + (rest.isEmpty() ? "" : "/" + rest);
    }

    /** A thread of its own, since Curator's locks belong to threads. */
    ExecutorService thread() {
        ExecutorService made = Executors.newSingleThreadExecutor();
        closing(made::shutdownNow);
        return made;
    }

    synchronized <T extends AutoCloseable> T closing(T what) {
        open.push(what);
        return what;
    }

    synchronized void close() {
        while (!open.isEmpty()) {
            try {
                open.pop().close();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }
    }

    /** Reports an observation, which must be the same on every server. */
    void see(String key, Object value) {
        String text = value instanceof byte[] b ? new String(b, StandardCharsets.ISO_8859_1) : String.valueOf(value);
        steps.say("see " + name + " " + key.replace(' ', '_') + " " + text.replaceAll("\\s+", " "));
    }

    String ask(String verb, Object... args) {
        StringBuilder line = new StringBuilder("ask " + name + " " + verb);
        for (Object arg : args) {
            line.append(' ').append(arg);
        }
        return steps.ask(line.toString());
    }

    /** Records the tree below this step's folder. */
    void tree(String label) {
        ask("tree", label.replace(' ', '_'));
    }

    /** Leaves the counts of changes out of this step's trees: they depend on who was faster. */
    void loose() {
        ask("loose");
    }

    /** Waits for this many watches on nodes of this step's folder and records them. */
    void watches(String label, int count) {
        ask("watches", label.replace(' ', '_'), count);
    }

    void check(boolean good, String otherwise) {
        if (!good) {
            throw new AssertionError(otherwise);
        }
    }

    void equal(Object want, Object got, String what) {
        check(Objects.deepEquals(want, got), what + ": want " + want + ", got " + got);
    }

    void await(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (!condition.call()) {
            check(System.nanoTime() < end, "waited in vain: " + what);
            Thread.sleep(POLL_MILLIS);
        }
    }

    /** Waits until the folder has this many children. */
    void awaitChildren(String path, int count) throws Exception {
        await(count + " children of " + path, () -> children(path).size() == count);
    }

    List<String> children(String path) throws Exception {
        try {
            List<String> names = new ArrayList<>(witness().getChildren().forPath(path));
            Collections.sort(names);
            return names;
        } catch (KeeperException.NoNodeException e) {
            return List.of();
        }
    }

    /** The name of the exception that the call ends with, or what it returns. */
    String outcome(Callable<?> call) {
        try {
            return String.valueOf(call.call());
        } catch (KeeperException e) {
            return e.code().name();
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] data) {
        return data == null ? "null" : new String(data, StandardCharsets.UTF_8);
    }
}
