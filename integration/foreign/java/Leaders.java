import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;

/** The two elections. */
final class Leaders {
    static void add(Steps steps) {
        steps.add("latch", Leaders::latch);
        steps.add("latch-robbed", Leaders::robbed);
        steps.add("selector", Leaders::selector);
        steps.add("selector-rotates", Leaders::rotates);
    }

    private static void latch(World w) throws Exception {
        String path = w.path("latch");
        List<LeaderLatch> latches = new ArrayList<>();
        AtomicInteger told = new AtomicInteger();
        for (int i = 0; i < 3; i++) {
            LeaderLatch latch = new LeaderLatch(w.client(), path, "id" + i, LeaderLatch.CloseMode.NOTIFY_LEADER);
            latch.addListener(new LeaderLatchListener() {
                @Override
                public void isLeader() {
                    told.incrementAndGet();
                }

                @Override
                public void notLeader() {
                    told.addAndGet(100);
                }
            });
            latch.start();
            w.awaitChildren(path, i + 1);
            latches.add(latch);
        }
        w.check(latches.get(0).await(10, TimeUnit.SECONDS), "no leader");
        w.watches("each its predecessor", 2);
        w.tree("three stand");
        w.see("leader", latches.get(2).getLeader());
        w.see("participants", latches.get(1).getParticipants());
        latches.get(1).close();
        w.awaitChildren(path, 2);
        w.see("leads after the second left", latches.get(0).hasLeadership() + " " + latches.get(2).hasLeadership());
        w.watches("the third watches the first", 2); // the watch of the one that left is still there
        latches.get(0).close();
        w.check(latches.get(2).await(10, TimeUnit.SECONDS), "no new leader");
        w.tree("the third leads");
        latches.get(2).close();
        w.awaitChildren(path, 0);
        w.await("listeners", () -> told.get() == 202);
        w.see("children", w.children(path));
    }

    /** A follower's node is deleted, then the leader's: who leads must be the same everywhere. */
    private static void robbed(World w) throws Exception {
        String path = w.path("latch");
        LeaderLatch one = new LeaderLatch(w.client(), path, "one");
        LeaderLatch two = new LeaderLatch(w.client(), path, "two");
        one.start();
        w.check(one.await(10, TimeUnit.SECONDS), "no leader");
        two.start();
        w.awaitChildren(path, 2);
        w.watches("the second watches the first", 1);
        String first = w.children(path).stream().filter(n -> n.endsWith("0000000000")).findFirst().orElseThrow();
        w.witness().delete().forPath(path + "/" + first);
        w.check(two.await(10, TimeUnit.SECONDS), "the second does not lead");
        w.see("both", one.hasLeadership() + " " + two.hasLeadership());
        w.tree("robbed");
        two.close();
        one.close();
        w.awaitChildren(path, 0);
    }

    private static void selector(World w) throws Exception {
        String path = w.path("selector");
        CountDownLatch leading = new CountDownLatch(1);
        CountDownLatch interrupted = new CountDownLatch(1);
        LeaderSelector one = new LeaderSelector(w.client(), path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                leading.countDown();
                try {
                    Thread.sleep(60_000);
                } catch (InterruptedException e) {
                    interrupted.countDown();
                    throw e;
                }
            }
        });
        one.setId("one");
        one.start();
        w.check(leading.await(10, TimeUnit.SECONDS), "no leader");
        CountDownLatch second = new CountDownLatch(1);
        Semaphore leave = new Semaphore(0);
        LeaderSelector two = new LeaderSelector(w.client(), path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                second.countDown();
                leave.acquire();
            }
        });
        two.setId("two");
        two.start();
        w.awaitChildren(path, 2);
        w.watches("the second waits", 1);
        w.tree("one leads");
        w.see("leader", one.getLeader());
        w.see("participants", two.getParticipants());
        one.interruptLeadership();
        w.check(interrupted.await(10, TimeUnit.SECONDS), "not interrupted");
        w.check(second.await(10, TimeUnit.SECONDS), "the second does not lead");
        w.tree("two leads");
        leave.release();
        w.awaitChildren(path, 0);
        w.await("the end of its first turn, without which it cannot stand again", one::requeue);
        w.await("the first to lead again", one::hasLeadership);
        w.tree("one leads again");
        one.close();
        two.close();
        w.awaitChildren(path, 0);
    }

    private static void rotates(World w) throws Exception {
        String path = w.path("selector");
        List<String> order = Collections.synchronizedList(new ArrayList<>());
        Semaphore turn = new Semaphore(0);
        List<LeaderSelector> all = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            String id = "id" + i;
            LeaderSelector selector = new LeaderSelector(w.client(), path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws Exception {
                    order.add(id);
                    turn.acquire();
                }
            });
            selector.autoRequeue();
            selector.start();
            w.awaitChildren(path, i + 1);
            all.add(selector);
        }
        for (int round = 1; round <= 6; round++) {
            int led = round;
            w.await("leader " + led, () -> order.size() == led);
            w.awaitChildren(path, 3);
            w.watches("two wait in round " + round, 2);
            turn.release();
        }
        w.await("the seventh leader", () -> order.size() == 7);
        w.see("order", order);
        w.awaitChildren(path, 3); // one that is closed while it stands again may or may not have made its node
        w.watches("two wait at the end", 2);
        for (LeaderSelector selector : all) {
            selector.close();
        }
        w.awaitChildren(path, 0);
    }
}
