import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;

/** Recipes whose nodes belong to a digest identity: who has the password takes part, a stranger does not. */
final class Owned {
    static void add(Steps steps) {
        steps.add("owned-mutex", Owned::mutex);
        steps.add("owned-others", Owned::others);
    }

    private static final ACLProvider CREATOR = new ACLProvider() {
        @Override
        public List<ACL> getDefaultAcl() {
            return ZooDefs.Ids.CREATOR_ALL_ACL;
        }

        @Override
        public List<ACL> getAclForPath(String path) {
            return ZooDefs.Ids.CREATOR_ALL_ACL;
        }
    };

    private static CuratorFramework member(World w) throws Exception {
        w.witness().createContainers(w.path("")); // everybody may look at the folder
        return w.start(w.builder(World.SESSION_MILLIS).authorization("digest", World.bytes("me:secret")).aclProvider(CREATOR));
    }

    private static void mutex(World w) throws Exception {
        String path = w.path("lock");
        CuratorFramework a = member(w);
        InterProcessMutex one = new InterProcessMutex(a, path);
        InterProcessMutex two = new InterProcessMutex(member(w), path);
        InterProcessMutex foreign = new InterProcessMutex(w.client(), path);
        one.acquire();
        String node = path + "/" + a.getChildren().forPath(path).get(0);
        w.see("ACLs", a.getACL().forPath(path) + " " + a.getACL().forPath(node));
        w.see("stranger", w.outcome(() -> foreign.acquire(100, TimeUnit.MILLISECONDS)));
        w.see("stranger lists", w.outcome(() -> w.witness().getChildren().forPath(path)));
        w.see("stranger deletes", w.outcome(() -> w.witness().delete().forPath(node)));
        ExecutorService thread = w.thread();
        Future<?> waiting = thread.submit(() -> {
            two.acquire();
            return null;
        });
        w.await("two in line", () -> a.getChildren().forPath(path).size() == 2);
        w.watches("one waits", 1);
        w.tree("one waits");
        one.release();
        waiting.get(10, TimeUnit.SECONDS);
        thread.submit(() -> {
            two.release();
            return null;
        }).get();
        w.see("left", a.getChildren().forPath(path));
    }

    private static void others(World w) throws Exception {
        CuratorFramework a = member(w);
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(a, w.path("semaphore"), 1);
        InterProcessSemaphoreV2 foreign = new InterProcessSemaphoreV2(w.client(), w.path("semaphore"), 1);
        Lease lease = semaphore.acquire();
        w.see("stranger asks for a lease", w.outcome(() -> foreign.acquire(100, TimeUnit.MILLISECONDS)));
        semaphore.returnLease(lease);
        DistributedAtomicLong number = new DistributedAtomicLong(a, w.path("long"), new RetryNTimes(5, 10));
        w.see("added", number.add(7L).postValue());
        DistributedAtomicLong peek = new DistributedAtomicLong(w.client(), w.path("long"), new RetryNTimes(5, 10));
        w.see("stranger reads", w.outcome(() -> peek.get().postValue()));
        w.see("stranger writes", w.outcome(() -> peek.increment().succeeded()));
        w.see("value", number.get().postValue());
    }
}
