import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.zookeeper.data.Stat;

/** A LeaderSelector: to acquire is to lead, and to release is to give the leadership up. */
final class Selector implements Lock {
    private static final String TAG = "lock-";
    private static final int POLL_MILLIS = 20;

    private final CuratorFramework client;
    private final String path;
    private LeaderSelector selector;
    private CountDownLatch done;
    private String node;

    Selector(CuratorFramework client, String path) {
        this.client = client;
        this.path = path;
    }

    @Override
    public synchronized List<String> acquire(long waitMillis, int permits) throws Exception {
        Lock.one(permits);
        CountDownLatch leads = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        LeaderSelector made = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework framework) throws Exception {
                leads.countDown();
                end.await();
            }
        });
        made.start();
        if (waitMillis < 0) {
            leads.await();
        } else if (!leads.await(waitMillis, TimeUnit.MILLISECONDS)) {
            made.close();
            return null;
        }
        node = ownNode();
        if (node == null) {
            end.countDown();
            made.close();
            throw new IllegalStateException("the leadership is lost again");
        }
        selector = made;
        done = end;
        return List.of(node);
    }

    /** The first node in line of this client's session, null if there is none. */
    private String ownNode() throws Exception {
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        List<String> line = participants().stream()
                .filter(name -> name.contains(TAG))
                .sorted(Comparator.comparing(name -> name.substring(name.lastIndexOf(TAG))))
                .toList();
        for (String name : line) {
            Stat stat = client.checkExists().forPath(path + "/" + name);
            if (stat != null && stat.getEphemeralOwner() == session) {
                return path + "/" + name;
            }
        }
        return null;
    }

    /** Returns when the node is gone: the selector deletes it after takeLeadership has returned. */
    @Override
    public synchronized void release() throws Exception {
        done.countDown();
        while (client.checkExists().forPath(node) != null) {
            Thread.sleep(POLL_MILLIS);
        }
        selector.close();
        selector = null;
    }

    @Override
    public Collection<String> participants() throws Exception {
        return client.getChildren().forPath(path);
    }
}
