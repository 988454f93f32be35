import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Barriers as locks. */
final class Barriers {
    private Barriers() {}

    /** A double barrier: to acquire is to enter, as a new member, and to release is to leave. */
    static final class Twice implements Lock {
        private final CuratorFramework client;
        private final String path;
        private final int members;
        private DistributedDoubleBarrier barrier;

        Twice(CuratorFramework client, String path, int members) {
            this.client = client;
            this.path = path;
            this.members = members;
        }

        @Override
        public List<String> acquire(long waitMillis, int permits) throws Exception {
            Lock.one(permits);
            barrier = new DistributedDoubleBarrier(client, path, members);
            if (waitMillis < 0) {
                barrier.enter();
                return List.of();
            }
            return barrier.enter(waitMillis, TimeUnit.MILLISECONDS) ? List.of() : null;
        }

        @Override
        public void release() throws Exception {
            barrier.leave();
        }

        @Override
        public Collection<String> participants() throws Exception {
            return client.getChildren().forPath(path);
        }
    }

    /** A barrier: to acquire is to wait for it, and to release is to set or remove it by turns. */
    static final class Once implements Lock {
        private final DistributedBarrier barrier;
        private boolean set;

        Once(CuratorFramework client, String path) {
            barrier = new DistributedBarrier(client, path);
        }

        @Override
        public List<String> acquire(long waitMillis, int permits) throws Exception {
            Lock.one(permits);
            if (waitMillis < 0) {
                barrier.waitOnBarrier();
                return List.of();
            }
            return barrier.waitOnBarrier(waitMillis, TimeUnit.MILLISECONDS) ? List.of() : null;
        }

        @Override
        public synchronized void release() throws Exception {
            if (set) {
                barrier.removeBarrier();
            } else {
                barrier.setBarrier();
            }
            set = !set;
        }

        @Override
        public Collection<String> participants() {
            return List.of();
        }
    }
}
