import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicValue;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/** Shared counts and atomic values. */
final class Counters {
    static void add(Steps steps) {
        steps.add("shared-count", Counters::sharedCount);
        steps.add("shared-value", Counters::sharedValue);
        steps.add("atomic-long", Counters::atomicLong);
        steps.add("atomic-load", Counters::load);
        steps.add("atomic-others", Counters::others);
    }

    private static void sharedCount(World w) throws Exception {
        String path = w.path("count");
        SharedCount one = w.closing(new SharedCount(w.client(), path, 7));
        SharedCount two = w.closing(new SharedCount(w.client(), path, 9));
        one.start();
        two.start();
        w.tree("started");
        w.watches("both read", 2);
        w.see("seed", one.getCount() + " " + two.getCount());
        List<Integer> heard = Collections.synchronizedList(new ArrayList<>());
        two.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader count, int value) {
                heard.add(value);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        });
        one.setCount(10);
        w.await("the new count", () -> heard.contains(10));
        w.watches("both read again", 2);
        VersionedValue<Integer> stale = two.getVersionedValue();
        w.see("version", stale.getVersion() + " " + stale.getValue());
        one.setCount(11);
        w.await("the next count", () -> heard.contains(11));
        w.see("try with a stale version", two.trySetCount(stale, 99));
        w.see("try with a fresh version", two.trySetCount(two.getVersionedValue(), 12));
        w.await("the count set by the second", () -> one.getCount() == 12);
        w.see("heard", heard.subList(0, 2)); // of its own write the second is told some time later
    }

    private static void sharedValue(World w) throws Exception {
        SharedValue value = w.closing(new SharedValue(w.client(), w.path("value"), World.bytes("seed")));
        value.start();
        w.witness().delete().forPath(w.path("value"));
        w.witness().create().forPath(w.path("value"), World.bytes("other"));
        w.see("blind", World.text(value.getValue()));
        value.setValue(World.bytes("mine"));
        w.see("set", World.text(value.getValue()));
    }

    private static String text(AtomicValue<?> value) {
        return value.succeeded() + " " + value.preValue() + " " + value.postValue();
    }

    private static void atomicLong(World w) throws Exception {
        String path = w.path("long");
        DistributedAtomicLong number = new DistributedAtomicLong(w.client(), path, new RetryNTimes(10, 10));
        w.see("missing", text(number.get()));
        w.see("compare on missing", text(number.compareAndSet(0L, 5L)));
        w.see("initialize", number.initialize(258L));
        w.see("initialize again", number.initialize(1L));
        w.tree("initialized");
        w.see("add", text(number.add(2L)));
        w.see("subtract", text(number.subtract(300L)));
        w.see("increment", text(number.increment()));
        w.see("decrement", text(number.decrement()));
        w.see("compare", text(number.compareAndSet(-40L, 77L)));
        w.see("compare in vain", text(number.compareAndSet(-40L, 78L)));
        w.see("try", text(number.trySet(5L)));
        number.forceSet(6L);
        w.tree("set");
        w.witness().setData().forPath(path, World.bytes("bad"));
        w.see("corrupted", w.outcome(() -> text(number.get())));
        w.witness().setData().forPath(path, new byte[0]);
        w.see("empty", text(number.get()));
    }

    private static void load(World w) throws Exception {
        w.loose(); // how often they fall back to the lock depends on who is faster
        w.witness().create().creatingParentsIfNeeded().forPath(w.path("lock")); // or it depends on luck whether it is there
        String path = w.path("long");
        List<Future<?>> all = new ArrayList<>();
        PromotedToLock lock = PromotedToLock.builder().lockPath(w.path("lock"))
                .retryPolicy(new RetryNTimes(100, 2)).timeout(20, TimeUnit.SECONDS).build();
        for (int c = 0; c < 4; c++) {
            DistributedAtomicLong number = new DistributedAtomicLong(w.client(), path, new RetryNTimes(2, 1), lock);
            all.add(w.thread().submit(() -> {
                for (int i = 0; i < 15; i++) {
                    w.check(number.increment().succeeded(), "not incremented");
                }
                return null;
            }));
        }
        for (Future<?> f : all) {
            f.get(30, TimeUnit.SECONDS);
        }
        DistributedAtomicLong number = new DistributedAtomicLong(w.client(), path, new RetryNTimes(1, 1));
        w.see("sum", number.get().postValue());
        w.see("number of writes", w.witness().checkExists().forPath(path).getVersion());
    }

    private static void others(World w) throws Exception {
        CuratorFramework client = w.client();
        RetryNTimes retry = new RetryNTimes(5, 10);
        DistributedAtomicInteger integer = new DistributedAtomicInteger(client, w.path("integer"), retry);
        w.see("integer", text(integer.add(-1)));
        DistributedAtomicValue value = new DistributedAtomicValue(client, w.path("value"), retry);
        AtomicValue<byte[]> was = value.trySet(World.bytes("one"));
        w.see("value", was.succeeded() + " " + World.text(was.postValue()));
        w.see("compared", value.compareAndSet(World.bytes("one"), World.bytes("two")).succeeded());
        CachedAtomicLong cached = new CachedAtomicLong(new DistributedAtomicLong(client, w.path("cached"), retry), 10);
        long sum = 0;
        for (int i = 0; i < 15; i++) {
            sum += cached.next().postValue();
        }
        w.see("cached", sum);
    }
}
