import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

/**
 * A Curator client that takes commands, one a line, and answers each with one line:
 * "ok ...", "false" or "error ...". A line may begin with "@name ": then the command runs
 * in the thread of that name and its answer begins with the same word. Each thread answers
 * in the order it was asked; Curator's locks belong to threads. The end of the input ends
 * the process.
 */
public final class Peer {
    private static final int WAIT_SECONDS = 30;
    private static final int KILL_ATTEMPTS = 6;
    private static final int POLL_MILLIS = 20;

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Map<String, BlockingQueue<String>> threads = new HashMap<>();
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
    private volatile CuratorFramework client;
    private volatile String address;

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null && peer.dispatch(line.trim()); line = in.readLine()) {
        }
        // A thread may wait for a lock for ever; its node goes with the session.
        Runtime.getRuntime().halt(0);
    }

    /** Hands a line to its thread; false ends the process. */
    private boolean dispatch(String line) {
        String prefix = "";
        if (line.startsWith("@")) {
            int end = line.indexOf(' ');
            if (end < 0) {
                out.println(line + " error no command");
                return true;
            }
            prefix = line.substring(0, end + 1);
            line = line.substring(end + 1).trim();
        }
        if (line.equals("quit")) {
            String said = answer("close");
            out.println(prefix + said);
            return false;
        }
        final String name = prefix;
        threads.computeIfAbsent(name, this::startThread).add(line);
        return true;
    }

    private BlockingQueue<String> startThread(String prefix) {
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread thread = new Thread(() -> {
            try {
                for (;;) {
                    out.println(prefix + answer(lines.take()));
                }
            } catch (InterruptedException e) {
                out.println(prefix + "error interrupted");
            }
        }, "peer " + prefix);
        thread.setDaemon(true);
        thread.start();
        return lines;
    }

    private String answer(String line) {
        try {
            return run(Arrays.asList(line.split("\\s+")));
        } catch (Throwable e) {
            String text = e.getClass().getName() + ": " + e.getMessage();
            return "error " + text.replaceAll("\\s+", " ");
        }
    }

    private String run(List<String> words) throws Exception {
        switch (words.get(0)) {
            case "connect":
                return connect(words.get(1), Integer.parseInt(words.get(2)));
            case "mutex":
                mutexes.put(words.get(1), new InterProcessMutex(connected(), words.get(2)));
                return "ok";
            case "acquire":
                return acquire(mutex(words.get(1)), words);
            case "release":
                mutex(words.get(1)).release();
                return "ok";
            case "participants":
                return ("ok " + String.join(" ", mutex(words.get(1)).getParticipantNodes())).trim();
            case "session":
                return answerSession();
            case "kill":
                return kill();
            case "close":
                return close();
            default:
                return "error unknown command " + words.get(0);
        }
    }

    private String connect(String to, int timeoutMillis) throws Exception {
        if (client != null) {
            return "error already connected";
        }
        CuratorFramework made = CuratorFrameworkFactory.builder()
                .connectString(to)
                .sessionTimeoutMs(timeoutMillis)
                .connectionTimeoutMs(Math.min(timeoutMillis, 5000))
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .build();
        made.start();
        if (!made.blockUntilConnected(WAIT_SECONDS, TimeUnit.SECONDS)) {
            made.close();
            return "error no connection to " + to + " in " + WAIT_SECONDS + " s";
        }
        client = made;
        address = to;
        return answerSession();
    }

    private static String acquire(InterProcessMutex mutex, List<String> words) throws Exception {
        if (words.size() < 3) {
            mutex.acquire();
            return "ok";
        }
        return mutex.acquire(Long.parseLong(words.get(2)), TimeUnit.MILLISECONDS) ? "ok" : "false";
    }

    /**
     * Ends the session behind the client's back, as an expiry would. The client may come back
     * in between and throw the twin out, so it is done when a twin is told that it expired.
     */
    private String kill() throws Exception {
        ZooKeeper own = connected().getZookeeperClient().getZooKeeper();
        for (int attempt = 0; attempt < KILL_ATTEMPTS; attempt++) {
            BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
            ZooKeeper twin = new ZooKeeper(address, own.getSessionTimeout(), event -> states.add(event.getState()),
                    own.getSessionId(), own.getSessionPasswd());
            KeeperState first = states.poll(WAIT_SECONDS, TimeUnit.SECONDS);
            twin.close();
            if (first == KeeperState.Expired) {
                return "ok";
            }
        }
        return "error the session outlived " + KILL_ATTEMPTS + " attempts at " + address;
    }

    private String close() {
        CuratorFramework open = client;
        client = null;
        mutexes.clear();
        if (open != null) {
            open.close();
        }
        return "ok";
    }

    private String answerSession() throws Exception {
        String said = session();
        return said.startsWith("error") ? said : "ok " + said;
    }

    /** Waits for a session: a handle that is new has none, and one that is lost throws. */
    private String session() throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        for (;;) {
            String why = "it has none yet";
            try {
                long id = connected().getZookeeperClient().getZooKeeper().getSessionId();
                if (id != 0) {
                    return "0x" + Long.toHexString(id);
                }
            } catch (KeeperException e) {
                why = e.toString();
            }
            if (System.nanoTime() > end) {
                return "error no session in " + WAIT_SECONDS + " s: " + why;
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    private CuratorFramework connected() {
        CuratorFramework open = client;
        if (open == null) {
            throw new IllegalStateException("not connected");
        }
        return open;
    }

    private InterProcessMutex mutex(String name) {
        InterProcessMutex mutex = mutexes.get(name);
        if (mutex == null) {
            throw new IllegalArgumentException("no mutex " + name);
        }
        return mutex;
    }
}
