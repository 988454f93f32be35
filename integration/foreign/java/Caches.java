import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCacheEvent;
import org.apache.zookeeper.CreateMode;

/** The caches of one folder and of one node. */
@SuppressWarnings("deprecation") // Curator's older caches are still the ones in use
final class Caches {
    static void add(Steps steps) {
        steps.add("path-cache", Caches::path);
        steps.add("path-cache-modes", Caches::modes);
        steps.add("node-cache", Caches::node);
    }

    static String event(PathChildrenCacheEvent e) {
        return e.getType() + (e.getData() == null ? "" : " " + e.getData().getPath() + "=" + World.text(e.getData().getData()));
    }

    private static void path(World w) throws Exception {
        String path = w.path("folder");
        PathChildrenCache cache = w.closing(new PathChildrenCache(w.client(), path, true));
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        cache.getListenable().addListener((c, e) -> {
            if (!e.getType().name().startsWith("CONNECTION_")) { // the first connection may or may not be told of
                heard.add(event(e));
            }
        });
        cache.start();
        CuratorFramework other = w.witness();
        w.await("the folder", () -> other.checkExists().forPath(path) != null);
        int size = heard.size();
        String[][] changes = {{"create", "a", "1"}, {"create", "b", "2"}, {"set", "a", "3"}, {"delete", "b", ""}, {"create", "b", "4"},
            {"set", "b", ""}, {"delete", "a", ""}};
        for (String[] c : changes) {
            String child = path + "/" + c[1];
            switch (c[0]) {
                case "create" -> other.create().forPath(child, World.bytes(c[2]));
                case "set" -> other.setData().forPath(child, World.bytes(c[2]));
                default -> other.delete().forPath(child);
            }
            size++;
            int want = size;
            w.await("event " + want + " after " + heard, () -> heard.size() >= want);
        }
        w.see("heard", heard);
        other.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(path + "/s-", World.bytes("5"));
        w.await("the sequential child", () -> cache.getCurrentData().size() == 2);
        w.see("cached", cache.getCurrentData().get(1).getPath() + " " + cache.getCurrentData().get(1).getStat().getVersion());
        w.tree("with children");
        w.watches("on the folder and its children", 2);
    }

    private static void modes(World w) throws Exception {
        String path = w.path("folder");
        CuratorFramework other = w.witness();
        for (int i = 0; i < 3; i++) {
            other.create().creatingParentsIfNeeded().forPath(path + "/n" + i, World.bytes("v" + i));
        }
        PathChildrenCache built = w.closing(new PathChildrenCache(w.client(), path, true));
        built.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        w.see("built", built.getCurrentData().size());
        PathChildrenCache posted = w.closing(new PathChildrenCache(w.client(), path, true));
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        posted.getListenable().addListener((c, e) -> {
            if (!e.getType().name().startsWith("CONNECTION_")) {
                heard.add(e.getType().name());
            }
        });
        posted.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
        w.await("INITIALIZED", () -> heard.contains("INITIALIZED"));
        w.see("heard", heard);
        PathChildrenCache bare = w.closing(new PathChildrenCache(w.client(), path, false));
        bare.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        w.see("bare", World.text(bare.getCurrentData().get(0).getData()));
        built.rebuild();
        built.clearAndRefresh();
        w.await("the refresh", () -> built.getCurrentData().size() == 3);
    }

    private static void node(World w) throws Exception {
        String path = w.path("parent/node");
        NodeCache cache = w.closing(new NodeCache(w.client(), path));
        List<String> heard = Collections.synchronizedList(new ArrayList<>());
        cache.getListenable().addListener(() ->
                heard.add(cache.getCurrentData() == null ? "none" : World.text(cache.getCurrentData().getData())));
        cache.start(true);
        w.see("at first", cache.getCurrentData());
        CuratorFramework other = w.witness();
        w.watches("on the missing node", 1);
        other.create().forPath(path, World.bytes("1"));
        w.await("created", () -> heard.size() == 1);
        w.watches("on the node", 1);
        other.setData().forPath(path, World.bytes("2"));
        w.await("changed", () -> heard.size() == 2);
        other.delete().forPath(path);
        w.await("deleted", () -> heard.size() == 3);
        w.watches("on the deleted node", 1);
        other.create().forPath(path, World.bytes("3"));
        w.await("created again", () -> heard.size() == 4);
        w.see("heard", heard);
    }
}
