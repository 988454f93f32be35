import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Barriers. */
final class Barriers {
    static void add(Steps steps) {
        steps.add("barrier", Barriers::barrier);
        steps.add("double-barrier", Barriers::doubleBarrier);
        steps.add("double-barrier-alone", Barriers::alone);
    }

    private static void barrier(World w) throws Exception {
        String path = w.path("barrier");
        DistributedBarrier owner = new DistributedBarrier(w.client(), path);
        DistributedBarrier guest = new DistributedBarrier(w.client(), path);
        w.see("open", guest.waitOnBarrier(5, TimeUnit.SECONDS));
        owner.setBarrier();
        owner.setBarrier();
        w.tree("set");
        w.see("closed", guest.waitOnBarrier(100, TimeUnit.MILLISECONDS));
        Future<?> waiting = w.thread().submit(() -> {
            guest.waitOnBarrier();
            return null;
        });
        w.watches("one waits", 1);
        w.check(!waiting.isDone(), "passed a set barrier");
        owner.removeBarrier();
        waiting.get(10, TimeUnit.SECONDS);
        owner.removeBarrier();
    }

    private static void doubleBarrier(World w) throws Exception {
        String path = w.path("barrier");
        List<DistributedDoubleBarrier> barriers = new ArrayList<>();
        List<java.util.concurrent.ExecutorService> threads = new ArrayList<>();
        List<Future<?>> entering = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(w.client(), path, 3);
            barriers.add(barrier);
            threads.add(w.thread());
            entering.add(threads.get(i).submit(() -> {
                barrier.enter();
                return null;
            }));
            if (i == 1) {
                w.awaitChildren(path, 2);
                w.check(!entering.get(0).isDone() && !entering.get(1).isDone(), "entered with two of three");
                w.tree("two of three");
                w.watches("on ready", 2);
            }
        }
        for (Future<?> f : entering) {
            f.get(10, TimeUnit.SECONDS);
        }
        w.tree("entered");
        List<Future<?>> leaving = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            DistributedDoubleBarrier barrier = barriers.get(i);
            leaving.add(threads.get(i).submit(() -> {
                barrier.leave();
                return null;
            }));
        }
        for (Future<?> f : leaving) {
            f.get(10, TimeUnit.SECONDS);
        }
        w.see("children", w.children(path));
    }

    private static void alone(World w) throws Exception {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(w.client(), w.path("barrier"), 2);
        w.see("entered", barrier.enter(300, TimeUnit.MILLISECONDS));
        w.tree("waited in vain");
    }
}
