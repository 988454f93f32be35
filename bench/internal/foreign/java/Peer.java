import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Contenders that use Curator. It obeys the commands that package load describes, one a
 * line, and answers each with one line.
 */
public final class Peer {
    private static final int WAIT_SECONDS = 60;
    private static final int STACK_BYTES = 256 << 10;
    private static final int WRITE_EVERY = 20;

    private final List<CuratorFramework> clients = new ArrayList<>();
    private Engine engine;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Peer peer = new Peer();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split("\\s+");
            try {
                out.println(("ok " + peer.obey(words)).trim());
            } catch (Throwable e) {
                out.println("error " + e.toString().replaceAll("\\s+", " "));
            }
            if (words[0].equals("quit")) {
                break;
            }
        }
        Runtime.getRuntime().halt(0); // threads may still wait for a lock
    }

    private String obey(String[] words) throws Exception {
        if (words[0].equals("setup")) {
            setup(words);
            return "";
        }
        if (words[0].equals("quit")) {
            for (CuratorFramework client : clients) {
                client.getZookeeperClient().getZooKeeper().close();
            }
            return "";
        }
        if (engine == null) {
            throw new IllegalStateException("not set up");
        }
        switch (words[0]) {
            case "open":
                engine.gate.open();
                return "";
            case "begin":
                engine.begin();
                return "";
            case "count":
                return Integer.toString(engine.count());
            case "end":
                return engine.end();
            case "close":
                engine.gate.close();
                return "";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void setup(String[] words) throws Exception {
        Map<String, String> spec = new HashMap<>();
        for (int i = 1; i < words.length; i++) {
            String[] parts = words[i].split("=", 2);
            spec.put(parts[0], parts[1]);
        }
        int timeout = Integer.parseInt(spec.get("timeout"));
        int sessions = Integer.parseInt(spec.get("sessions"));
        int contenders = Integer.parseInt(spec.get("contenders"));
        int locks = Integer.parseInt(spec.get("locks"));
        for (int i = 0; i < sessions; i++) {
            String[] servers = spec.get("addrs").split(",");
            clients.add(connect(servers[i % servers.length], timeout));
        }
        Weights weights = Weights.of(spec);
        boolean queued = contenders > locks && 2 * weights.lock() > weights.limit();
        Engine made = new Engine(locks, weights.limit(), queued);
        for (int i = 0; i < contenders; i++) {
            String path = spec.get("root") + "/lock" + i % locks;
            Locker locker = Locker.of(clients.get(i % sessions), spec, path, weights);
            Player player = new Player(made, locker, i % locks, WRITE_EVERY * i / contenders);
            Thread thread = new Thread(null, player, "contender " + i, STACK_BYTES);
            thread.setDaemon(true);
            made.add(player);
            thread.start();
        }
        engine = made;
    }

    private static CuratorFramework connect(String address, int timeoutMillis) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(address)
                .sessionTimeoutMs(timeoutMillis)
                .connectionTimeoutMs(timeoutMillis)
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .build();
        client.start();
        if (!client.blockUntilConnected(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + address + " in " + WAIT_SECONDS + " s");
        }
        return client;
    }
}
