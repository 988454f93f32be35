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
import org.apache.curator.framework.CuratorFramework;

/**
 * Curator clients and their recipes, which take commands, one a line, and answer each with
 * one line: "ok ...", "false" or "error ...". A line may begin with "@name ": then the
 * command runs in the thread of that name and its answer begins with the same word. Each
 * thread answers in the order it was asked; Curator's locks belong to threads. The end of
 * the input ends the process.
 */
public final class Peer {
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Map<String, BlockingQueue<String>> threads = new HashMap<>();
    private final Map<String, Client> clients = new ConcurrentHashMap<>();
    private final Map<String, Lock> locks = new ConcurrentHashMap<>();
    private final Map<String, Count> counts = new ConcurrentHashMap<>();
    private final Map<String, Registered> registered = new ConcurrentHashMap<>();
    private final Map<String, Number> numbers = new ConcurrentHashMap<>();

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
            for (String client : clients.keySet()) {
                answer("close " + client);
            }
            out.println(prefix + "ok");
            return false;
        }
        threads.computeIfAbsent(prefix, this::startThread).add(line);
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
            String said = run(Arrays.asList(line.split("\\s+")));
            return said == null ? "false" : ("ok " + said).trim();
        } catch (Throwable e) {
            return "error " + (e.getClass().getName() + ": " + e.getMessage()).replaceAll("\\s+", " ");
        }
    }

    /** What to say after "ok"; null says "false". */
    private String run(List<String> words) throws Exception {
        String name = words.size() > 1 ? words.get(1) : "";
        switch (words.get(0)) {
            case "connect":
                return connect(name, words.get(2), Integer.parseInt(words.get(3)));
            case "session":
                return found(clients, name).session();
            case "close":
                found(clients, name).close();
                clients.remove(name);
                return "";
            case "make":
                make(name, found(clients, words.get(2)).curator, words.get(3), words.subList(4, words.size()));
                return "";
            case "acquire":
                List<String> nodes = found(locks, name).acquire(Long.parseLong(words.get(2)), Integer.parseInt(words.get(3)));
                return nodes == null ? null : String.join(" ", nodes);
            case "release":
                found(locks, name).release();
                return "";
            case "participants":
                return String.join(" ", found(locks, name).participants());
            case "leads":
                return ((Latch) found(locks, name)).leads() ? "" : null;
            case "revoked":
                return found(locks, name).awaitRevocation(Long.parseLong(words.get(2))) ? "" : null;
            case "revoke":
                found(clients, name).revoke(words.get(2));
                return "";
            case "get":
                return found(counts, name).get();
            case "set":
                found(counts, name).set(Integer.parseInt(words.get(2)));
                return "";
            case "tryset":
                return found(counts, name).trySet(Integer.parseInt(words.get(2)));
            case "await":
                return found(counts, name).await(Integer.parseInt(words.get(2)), Long.parseLong(words.get(3))) ? "" : null;
            case "registered-path":
                return found(registered, name).path();
            case "registered-set":
                found(registered, name).set(words.get(2));
                return "";
            case "registered-members":
                return found(registered, name).members();
            case "registered-close":
                found(registered, name).close();
                return "";
            case "add":
                return found(numbers, name).add(Long.parseLong(words.get(2)));
            case "next":
                return found(numbers, name).next();
            case "number":
                return found(numbers, name).get();
            default:
                throw new IllegalArgumentException("unknown command " + words.get(0));
        }
    }

    private String connect(String name, String address, int timeoutMillis) throws Exception {
        if (clients.containsKey(name)) {
            throw new IllegalStateException("already connected: " + name);
        }
        Client made = new Client(address, timeoutMillis);
        clients.put(name, made);
        return made.session();
    }

    /** Makes a recipe; a read/write lock becomes two, NAME.read and NAME.write. */
    private void make(String name, CuratorFramework client, String kind, List<String> args) throws Exception {
        switch (kind) {
            case "mutex":
                locks.put(name, Mutex.on(client, args.get(0), false));
                break;
            case "revocable":
                locks.put(name, Mutex.on(client, args.get(0), true));
                break;
            case "rw":
                Mutex.Pair pair = Mutex.pair(client, args.get(0));
                locks.put(name + ".read", pair.read());
                locks.put(name + ".write", pair.write());
                break;
            case "semaphore":
                locks.put(name, Semaphore.of(client, args.get(0), Integer.parseInt(args.get(1))));
                break;
            case "counted-semaphore":
                locks.put(name, Semaphore.of(client, args.get(0), found(counts, args.get(1)).shared));
                break;
            case "semaphore-mutex":
                locks.put(name, new SemaphoreMutex(client, args.get(0)));
                break;
            case "latch":
                locks.put(name, new Latch(client, args.get(0)));
                break;
            case "selector":
                locks.put(name, new Selector(client, args.get(0)));
                break;
            case "double-barrier":
                locks.put(name, new Barriers.Twice(client, args.get(0), Integer.parseInt(args.get(1))));
                break;
            case "barrier":
                locks.put(name, new Barriers.Once(client, args.get(0)));
                break;
            case "multi":
                locks.put(name, new Multi(args.stream().map(member -> found(locks, member)).toList()));
                break;
            case "persistent-node":
                registered.put(name, Registered.node(client, args));
                break;
            case "group-member":
                registered.put(name, Registered.member(client, args));
                break;
            case "count":
                counts.put(name, new Count(client, args.get(0), Integer.parseInt(args.get(1))));
                break;
            case "long":
                numbers.put(name, new Number(client, args.get(0), Integer.parseInt(args.get(1)), args.size() > 2 ? args.get(2) : null));
                break;
            default:
                throw new IllegalArgumentException("unknown recipe " + kind);
        }
    }

    private static <T> T found(Map<String, T> all, String name) {
        T one = all.get(name);
        if (one == null) {
            throw new IllegalArgumentException("not made: " + name);
        }
        return one;
    }
}
