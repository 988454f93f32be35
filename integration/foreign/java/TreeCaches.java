import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;

/** The caches of whole trees and the persistent watcher under the newer one. */
@SuppressWarnings("deprecation") // TreeCache is still in use
final class TreeCaches {
    static void add(Steps steps) {
        steps.add("tree-cache", TreeCaches::tree);
        steps.add("curator-cache", TreeCaches::curator);
        steps.add("curator-cache-node", TreeCaches::single);
        steps.add("persistent-watcher", TreeCaches::watcher);
    }

    /** Changes a tree step by step, and waits each time for the one event that tells of the change. */
    private static void change(World w, String root, List<?> heard) throws Exception {
        CuratorFramework other = w.witness();
        String[][] changes = {{"create", "/a", "1"}, {"create", "/a/b", "2"}, {"set", "/a/b", "3"}, {"create", "/a/b/c", "4"},
            {"set", "", "5"}, {"delete", "/a/b/c", ""}, {"create", "/d", ""}, {"delete", "/d", ""}};
        for (String[] c : changes) {
            int want = heard.size() + 1;
            String node = root + c[1];
            switch (c[0]) {
                case "create" -> other.create().forPath(node, World.bytes(c[2]));
                case "set" -> other.setData().forPath(node, World.bytes(c[2]));
                default -> other.delete().forPath(node);
            }
            w.await(c[0] + " " + c[1] + " after " + heard, () -> heard.size() >= want);
        }
    }

    private static void tree(World w) throws Exception {
        String root = w.path("root");
        w.witness().create().creatingParentsIfNeeded().forPath(root, World.bytes("0"));
        TreeCache cache = w.closing(TreeCache.newBuilder(w.client(), root).build());
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        cache.getListenable().addListener((c, e) ->
                heard.add(e.getType() + (e.getData() == null ? "" : " " + e.getData().getPath() + "=" + World.text(e.getData().getData()))));
        cache.start();
        w.await("INITIALIZED", () -> heard.contains("INITIALIZED"));
        change(w, root, heard);
        w.see("heard", heard);
        w.see("children", cache.getCurrentChildren(root + "/a").keySet());
        w.tree("changed");
        w.watches("on every node", 3);
    }

    private static String text(ChildData data) {
        return data == null ? "none" : data.getPath() + "=" + World.text(data.getData()) + "@" + data.getStat().getVersion();
    }

    private static void curator(World w) throws Exception {
        String root = w.path("root");
        w.witness().create().creatingParentsIfNeeded().forPath(root, World.bytes("0"));
        CuratorCache cache = w.closing(CuratorCache.build(w.client(), root));
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        CuratorCacheListener listener = CuratorCacheListener.builder()
                .forInitialized(() -> heard.add("INITIALIZED"))
                .forAll((type, before, after) -> heard.add(type + " " + text(before) + " " + text(after))).build();
        cache.listenable().addListener(listener);
        cache.start();
        w.await("INITIALIZED", () -> heard.contains("INITIALIZED"));
        change(w, root, heard);
        w.see("heard", heard);
        w.see("cached", new TreeSet<>(cache.stream().map(TreeCaches::text).toList()));
        int before = heard.size();
        w.witness().delete().deletingChildrenIfNeeded().forPath(root);
        // The cache forgets a node before it tells its listeners: an empty cache does not mean that they know.
        w.await("the end of three nodes after " + heard, () -> heard.size() >= before + 3);
        w.see("heard of the end", heard.subList(before, heard.size()));
        w.see("cached in the end", cache.size());
    }

    private static void single(World w) throws Exception {
        String node = w.path("node");
        CuratorCache cache = w.closing(CuratorCache.build(w.client(), node, CuratorCache.Options.SINGLE_NODE_CACHE));
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        cache.listenable().addListener(CuratorCacheListener.builder()
                .forAll((type, before, after) -> heard.add(type + " " + text(before) + " " + text(after))).build());
        cache.start();
        w.watches("persistent", 1);
        CuratorFramework other = w.witness();
        other.create().creatingParentsIfNeeded().forPath(node, World.bytes("1"));
        w.await("created", () -> heard.size() == 1);
        other.create().forPath(node + "/child", World.bytes("not cached"));
        other.setData().forPath(node, World.bytes("2"));
        w.await("changed", () -> heard.size() == 2);
        other.delete().deletingChildrenIfNeeded().forPath(node);
        w.await("deleted", () -> heard.size() == 3);
        w.see("heard", heard);
    }

    private static void watcher(World w) throws Exception {
        String root = w.path("root");
        w.witness().create().creatingParentsIfNeeded().forPath(root);
        for (boolean recursive : new boolean[] {false, true}) {
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            PersistentWatcher watcher = new PersistentWatcher(w.client(), root, recursive);
            java.util.concurrent.CountDownLatch set = new java.util.concurrent.CountDownLatch(1);
            watcher.getListenable().addListener(e -> heard.add(e.getType() + " " + e.getPath()));
            watcher.getResetListenable().addListener(set::countDown);
            watcher.start();
            w.check(set.await(10, java.util.concurrent.TimeUnit.SECONDS), "not set");
            w.watches("set " + recursive, recursive ? 2 : 1);
            CuratorFramework other = w.witness();
            other.create().forPath(root + "/a");
            other.create().forPath(root + "/a/b");
            other.setData().forPath(root, World.bytes("1"));
            other.setData().forPath(root + "/a/b", World.bytes("1"));
            other.delete().forPath(root + "/a/b");
            other.delete().forPath(root + "/a");
            other.setData().forPath(root, World.bytes("last"));
            int want = recursive ? 7 : 4;
            w.await("events, have " + heard, () -> heard.size() >= want);
            w.see("heard " + recursive, heard);
            watcher.close();
            w.watches("closed " + recursive, recursive ? 2 : 1); // the Java client takes a watch back on its own side only
        }
    }
}
