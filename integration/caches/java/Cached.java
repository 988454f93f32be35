import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;

/** One cache of any class, and what its listener has heard. */
@SuppressWarnings("deprecation") // the older classes are still in use
abstract class Cached {
    private static final int WAIT_SECONDS = 30;
    private static final int POLL_MILLIS = 5;

    final Heard heard = new Heard();

    /** The node as the cache has it, or null. */
    abstract ChildData data(String path);

    abstract int walk();

    abstract void close() throws Exception;

    static Cached open(CuratorFramework client, String kind, String path) throws Exception {
        switch (kind) {
            case "curator":
                return new Newer(client, path, false);
            case "compressed":
                return new Newer(client, path, false, CuratorCache.Options.COMPRESSED_DATA);
            case "single":
                return new Newer(client, path, false, CuratorCache.Options.SINGLE_NODE_CACHE);
            case "kept":
                return new Newer(client, path, false, CuratorCache.Options.DO_NOT_CLEAR_ON_CLOSE);
            case "adapted":
                return new Newer(client, path, true);
            case "tree":
                return new Tree(client, path);
            case "node":
                return new Node(client, path);
            case "children":
                return new Children(client, path);
            default:
                throw new IllegalArgumentException("no such cache: " + kind);
        }
    }

    String get(String path) {
        ChildData data = data(path);
        return data == null ? "-" : new String(data.getData(), StandardCharsets.UTF_8);
    }

    void holds(String path, String want) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (!get(path).equals(want)) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException(path + " is " + get(path) + " and not " + want + "; heard " + heard);
            }
            Thread.sleep(POLL_MILLIS);
        }
    }

    private static String at(ChildData data) {
        return data == null ? "" : " " + data.getPath();
    }

    private static final class Newer extends Cached {
        private final CuratorCache cache;

        /** Adapted has the listener of a PathChildrenCache. */
        Newer(CuratorFramework client, String path, boolean adapted, CuratorCache.Options... options) {
            cache = CuratorCache.builder(client, path).withOptions(options)
                    .withExceptionHandler(e -> heard.of("exception " + e.getClass().getSimpleName())).build();
            CuratorCacheListener listener = adapted
                    ? CuratorCacheListener.builder().forPathChildrenCache(path, client, (c, e) -> heard.of(e.getType() + at(e.getData()))).build()
                    : CuratorCacheListener.builder().forInitialized(() -> heard.of("initialized"))
                            .forAll((type, before, after) -> heard.of(type + at(after == null ? before : after))).build();
            cache.listenable().addListener(listener);
            cache.start();
        }

        @Override
        ChildData data(String path) {
            return cache.get(path).orElse(null);
        }

        @Override
        int walk() {
            return (int) cache.stream().count();
        }

        @Override
        void close() {
            cache.close();
        }
    }

    private static final class Tree extends Cached {
        private final TreeCache cache;

        Tree(CuratorFramework client, String path) throws Exception {
            cache = new TreeCache(client, path);
            cache.getListenable().addListener((c, e) -> heard.of(e.getType() + at(e.getData())));
            cache.start();
        }

        @Override
        ChildData data(String path) {
            return cache.getCurrentData(path);
        }

        @Override
        int walk() {
            int all = 0;
            for (Iterator<ChildData> each = cache.iterator(); each.hasNext(); each.next()) {
                all++;
            }
            return all;
        }

        @Override
        void close() {
            cache.close();
        }
    }

    private static final class Node extends Cached {
        private final NodeCache cache;

        Node(CuratorFramework client, String path) throws Exception {
            cache = new NodeCache(client, path);
            cache.getListenable().addListener(() -> heard.of("changed"));
            cache.start();
        }

        @Override
        ChildData data(String path) {
            return cache.getCurrentData();
        }

        @Override
        int walk() {
            return cache.getCurrentData() == null ? 0 : 1;
        }

        @Override
        void close() throws Exception {
            cache.close();
        }
    }

    private static final class Children extends Cached {
        private final PathChildrenCache cache;

        Children(CuratorFramework client, String path) throws Exception {
            cache = new PathChildrenCache(client, path, true);
            cache.getListenable().addListener((c, e) -> heard.of(e.getType() + at(e.getData())));
            cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        }

        @Override
        ChildData data(String path) {
            return cache.getCurrentData(path);
        }

        @Override
        int walk() {
            return cache.getCurrentData().size();
        }

        @Override
        void close() throws Exception {
            cache.close();
        }
    }
}
