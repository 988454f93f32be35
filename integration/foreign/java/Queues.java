import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.ErrorMode;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Queues. */
final class Queues {
    static void add(Steps steps) {
        steps.add("queue", Queues::queue);
        steps.add("queue-locked", Queues::locked);
        steps.add("queue-id", Queues::id);
        steps.add("queue-priority", Queues::priority);
        steps.add("queue-delay", Queues::delay);
        steps.add("queue-simple", Queues::simple);
    }

    private interface Taker {
        void take(String item) throws Exception;
    }

    private static final QueueSerializer<String> TEXT = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return World.bytes(item);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return World.text(bytes);
        }
    };

    private static QueueConsumer<String> consumer(Taker taker) {
        return new QueueConsumer<>() {
            @Override
            public void consumeMessage(String item) throws Exception {
                taker.take(item);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        };
    }

    private static void queue(World w) throws Exception {
        String path = w.path("queue");
        DistributedQueue<String> producer = w.closing(QueueBuilder.builder(w.client(), null, TEXT, path).buildQueue());
        producer.start();
        for (int i = 0; i < 5; i++) {
            producer.put("item" + i);
        }
        producer.flushPuts(10, TimeUnit.SECONDS);
        w.tree("five put");
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        DistributedQueue<String> taker = w.closing(QueueBuilder.builder(w.client(), consumer(got::add), TEXT, path).buildQueue());
        taker.start();
        w.await("five items", () -> got.size() == 5);
        producer.putMulti(multi("m1", "m2", "m3"));
        w.await("eight items", () -> got.size() == 8);
        w.see("got", got);
        w.awaitChildren(path, 0);
    }

    private static org.apache.curator.framework.recipes.queue.MultiItem<String> multi(String... items) {
        java.util.Iterator<String> rest = List.of(items).iterator();
        return () -> rest.hasNext() ? rest.next() : null;
    }

    private static void locked(World w) throws Exception {
        String path = w.path("queue");
        String locks = w.path("locks");
        AtomicInteger tries = new AtomicInteger();
        CountDownLatch inside = new CountDownLatch(1);
        CountDownLatch go = new CountDownLatch(1);
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        DistributedQueue<String> queue = w.closing(QueueBuilder.builder(w.client(), consumer(item -> {
            if (tries.incrementAndGet() == 1) {
                inside.countDown();
                go.await();
                throw new IllegalStateException("first try");
            }
            got.add(item);
        }), TEXT, path).lockPath(locks).buildQueue());
        queue.setErrorMode(ErrorMode.REQUEUE);
        queue.start();
        queue.put("a");
        w.check(inside.await(10, TimeUnit.SECONDS), "nothing to consume");
        w.tree("one is consumed");
        go.countDown();
        w.await("a second try", () -> got.size() == 1);
        // A list that is read while the item is being deleted would make the queue lock the item once more.
        w.awaitChildren(path, 0);
        w.awaitChildren(locks, 0);
        queue.put("b");
        w.await("the next", () -> got.size() == 2);
        w.see("got", got + " in " + tries);
        w.awaitChildren(path, 0);
        w.awaitChildren(locks, 0);
    }

    private static void id(World w) throws Exception {
        String path = w.path("queue");
        DistributedIdQueue<String> queue = w.closing(QueueBuilder.builder(w.client(), null, TEXT, path).buildIdQueue());
        queue.start();
        queue.put("first", "id/1");
        queue.put("second", "id2");
        queue.put("third", "id2");
        queue.flushPuts(10, TimeUnit.SECONDS);
        w.tree("three put");
        w.see("removed", queue.remove("id2") + " " + queue.remove("none"));
    }

    private static void priority(World w) throws Exception {
        String path = w.path("queue");
        DistributedPriorityQueue<String> producer = w.closing(QueueBuilder.builder(w.client(), null, TEXT, path).buildPriorityQueue(0));
        producer.start();
        for (int p : new int[] {5, -1, 3, 0, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            producer.put("p" + p, p);
        }
        producer.flushPuts(10, TimeUnit.SECONDS);
        w.tree("put");
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        DistributedPriorityQueue<String> taker =
                w.closing(QueueBuilder.builder(w.client(), consumer(got::add), TEXT, path).buildPriorityQueue(0));
        taker.start();
        w.await("all", () -> got.size() == 6);
        w.see("got", got);
        w.awaitChildren(path, 0);
    }

    private static void delay(World w) throws Exception {
        String path = w.path("queue");
        // All is there before anybody takes, or on a busy machine the first item may be due before the last is put.
        DistributedDelayQueue<String> producer = w.closing(QueueBuilder.builder(w.client(), null, TEXT, path).buildDelayQueue());
        producer.start();
        long now = System.currentTimeMillis();
        Map<String, Long> due = Map.of("late", now + 1400, "early", now + 700, "at once", now);
        for (String item : List.of("late", "early", "at once")) {
            producer.put(item, due.get(item));
        }
        producer.flushPuts(10, TimeUnit.SECONDS);
        w.tree("put");
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger early = new AtomicInteger();
        DistributedDelayQueue<String> taker = w.closing(QueueBuilder.builder(w.client(), consumer(item -> {
            if (System.currentTimeMillis() < due.get(item)) {
                early.incrementAndGet();
            }
            got.add(item);
        }), TEXT, path).buildDelayQueue());
        taker.start();
        w.await("all", () -> got.size() == 3);
        w.see("got", got + ", before their time " + early);
        w.awaitChildren(path, 0);
    }

    private static void simple(World w) throws Exception {
        String path = w.path("queue");
        SimpleDistributedQueue queue = new SimpleDistributedQueue(w.client(), path);
        SimpleDistributedQueue other = new SimpleDistributedQueue(w.client(), path);
        w.see("empty", queue.peek() + " " + queue.poll() + " " + w.outcome(queue::element));
        queue.offer(World.bytes("one"));
        queue.offer(World.bytes("two"));
        w.tree("two put");
        w.see("peek", other.peek());
        w.see("taken", World.text(other.take()) + " " + World.text(other.poll()));
        w.see("poll in vain", other.poll(100, TimeUnit.MILLISECONDS));
        Future<byte[]> waiting = w.thread().submit(other::take);
        queue.offer(World.bytes("three"));
        w.see("waited for", waiting.get(10, TimeUnit.SECONDS));
        List<Future<byte[]>> takers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            takers.add(w.thread().submit(i % 2 == 0 ? queue::take : other::take));
        }
        TreeSet<String> got = new TreeSet<>();
        for (int i = 0; i < 4; i++) {
            queue.offer(World.bytes("t" + i));
        }
        for (Future<byte[]> f : takers) {
            got.add(World.text(f.get(10, TimeUnit.SECONDS)));
        }
        w.see("four takers", got);
    }
}
