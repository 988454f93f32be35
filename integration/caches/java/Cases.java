import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;

/**
 * Curator's caches, one command a line on standard input and one answer a line on standard output,
 * "ok" or "error" and more:
 *
 * <pre>
 * connect ADDRESS TRIES  a client in place of the one before, which tries each request again so often
 * open NAME KIND PATH    a cache; returns before it is filled
 * await NAME EVENT       until the cache's listener has heard of it
 * heard NAME             all events, with commas between
 * get NAME PATH          the data, "-" if the cache does not have the node
 * holds NAME PATH DATA   until the cache has this data
 * walk NAME              how many nodes a walk through the cache finds
 * block NAME             the listener blocks at the next event
 * release NAME           and goes on
 * close NAME
 * </pre>
 */
public final class Cases {
    private static final int SESSION_MILLIS = 10_000;
    private static final int RETRY_MILLIS = 50;
    private static final int WAIT_SECONDS = 30;

    private final Map<String, Cached> caches = new HashMap<>();
    private CuratorFramework client;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Cases cases = new Cases();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String said;
            try {
                said = ("ok " + cases.obey(line.split(" "))).trim();
            } catch (Throwable e) {
                said = "error " + e.toString().replaceAll("\\s+", " ");
            }
            out.println(said);
        }
        Runtime.getRuntime().halt(0);
    }

    private String obey(String[] words) throws Exception {
        String name = words[1];
        switch (words[0]) {
            case "connect":
                connect(words[1], Integer.parseInt(words[2]));
                return "";
            case "open":
                caches.put(name, Cached.open(client, words[2], words[3]));
                return "";
            case "await":
                caches.get(name).heard.await(String.join(" ", java.util.Arrays.asList(words).subList(2, words.length)));
                return "";
            case "heard":
                return caches.get(name).heard.toString();
            case "get":
                return caches.get(name).get(words[2]);
            case "holds":
                caches.get(name).holds(words[2], words[3]);
                return "";
            case "walk":
                return Integer.toString(caches.get(name).walk());
            case "block":
                caches.get(name).heard.block();
                return "";
            case "release":
                caches.get(name).heard.release();
                return "";
            case "close":
                caches.get(name).close();
                return "";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void connect(String address, int tries) throws Exception {
        if (client != null) {
            client.close();
        }
        caches.clear();
        client = CuratorFrameworkFactory.newClient(address, SESSION_MILLIS, SESSION_MILLIS, new RetryNTimes(tries, RETRY_MILLIS));
        client.start();
        if (!client.blockUntilConnected(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + address);
        }
    }
}
