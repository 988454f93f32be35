import java.io.BufferedReader;
import java.io.Closeable;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.cache.TreeCacheEvent;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** A cache of Curator's in a process of its own. It obeys the commands that package caches describes. */
@SuppressWarnings("deprecation") // TreeCache is still in use
public final class Caching {
    private static final int WAIT_SECONDS = 120;
    private static final int SESSION_MILLIS = 30_000;
    private static final int POLL_MILLIS = 1;

    /** What both classes of caches can do. */
    private interface Cache extends Closeable {
        /** Returns once the tree is read. */
        void load() throws Exception;

        int size();

        /** The version of a node's data, -1 without the node. */
        int version(String path);
    }

    private CuratorFramework client;
    private String kind;
    private Cache cache;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Caching peer = new Caching();
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
        Runtime.getRuntime().halt(0);
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "connect":
                kind = words[1];
                connect(words[2]);
                return "";
            case "load":
                return load(words[1]);
            case "await":
                long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
                while (cache.version(words[1]) != Integer.parseInt(words[2])) {
                    if (System.nanoTime() > end) {
                        throw new IllegalStateException(words[1] + " has version " + cache.version(words[1]));
                    }
                    Thread.sleep(POLL_MILLIS);
                }
                return "";
            case "memory":
                return Long.toString(memory());
            case "drop":
                cache.close();
                cache = null;
                return "";
            case "quit":
                if (client != null) {
                    client.close();
                }
                return "";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void connect(String address) throws Exception {
        if (client != null) {
            client.close();
        }
        client = CuratorFrameworkFactory.newClient(address, SESSION_MILLIS, SESSION_MILLIS, new ExponentialBackoffRetry(100, 5));
        client.start();
        if (!client.blockUntilConnected(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + address);
        }
    }

    private String load(String path) throws Exception {
        switch (kind) {
            case "curator":
                cache = new Newer(client, path);
                break;
            case "treecache":
                cache = new Older(client, path);
                break;
            default:
                throw new IllegalArgumentException("no such cache: " + kind);
        }
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            pool.resetPeakUsage();
        }
        long begun = System.nanoTime();
        cache.load();
        return "{\"took\":" + (System.nanoTime() - begun) + ",\"nodes\":" + cache.size() + ",\"peak\":" + peak() + "}";
    }

    /** The most bytes in use of each part of the heap since the reset, together. */
    private static long peak() {
        long sum = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            if (pool.getType() == MemoryType.HEAP) {
                sum += pool.getPeakUsage().getUsed();
            }
        }
        return sum;
    }

    /** How many bytes of the heap are in use after two collections of garbage. */
    private static long memory() {
        MemoryMXBean bean = ManagementFactory.getMemoryMXBean();
        System.gc();
        System.gc();
        return bean.getHeapMemoryUsage().getUsed();
    }

    private static void await(CountDownLatch read) throws InterruptedException {
        if (!read.await(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the tree is not read after " + WAIT_SECONDS + " s");
        }
    }

    private static final class Newer implements Cache {
        private final CuratorCache cache;

        Newer(CuratorFramework client, String path) {
            cache = CuratorCache.build(client, path);
        }

        @Override
        public void load() throws Exception {
            CountDownLatch read = new CountDownLatch(1);
            cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(read::countDown).build());
            cache.start();
            await(read);
        }

        @Override
        public int size() {
            return cache.size();
        }

        @Override
        public int version(String path) {
            return cache.get(path).map(data -> data.getStat().getVersion()).orElse(-1);
        }

        @Override
        public void close() {
            cache.close();
        }
    }

    private static final class Older implements Cache {
        private final TreeCache cache;

        Older(CuratorFramework client, String path) {
            cache = new TreeCache(client, path);
        }

        @Override
        public void load() throws Exception {
            CountDownLatch read = new CountDownLatch(1);
            cache.getListenable().addListener((c, event) -> {
                if (event.getType() == TreeCacheEvent.Type.INITIALIZED) {
                    read.countDown();
                }
            });
            cache.start();
            await(read);
        }

        @Override
        public int size() {
            int all = 0;
            for (java.util.Iterator<ChildData> each = cache.iterator(); each.hasNext(); each.next()) {
                all++;
            }
            return all;
        }

        @Override
        public int version(String path) {
            ChildData data = cache.getCurrentData(path);
            return data == null ? -1 : data.getStat().getVersion();
        }

        @Override
        public void close() {
            cache.close();
        }
    }
}
