import java.util.Arrays;

/** One contender at work, and what it measured. */
final class Player implements Runnable {
    private static final int WRITE_EVERY = 20;
    private static final int FIRST_SIZE = 1024;

    private final Engine engine;
    private final Locker locker;
    private final Witness witness;
    private final int turn;

    // guarded by this
    private boolean on;
    private int cycles;
    private Times cycle = new Times();
    private Times handOver = new Times();

    Player(Engine engine, Locker locker, int lock, int turn) {
        this.engine = engine;
        this.locker = locker;
        this.witness = engine.witness(lock);
        this.turn = turn;
    }

    @Override
    public void run() {
        String verb = "acquire";
        try {
            for (int n = 0;; n++) {
                boolean writes = locker.write != null && (n + turn) % WRITE_EVERY == 0;
                Locker.Part part = writes ? locker.write : locker.lock;
                long weight = writes ? locker.weights.write() : locker.weights.lock();
                verb = "acquire";
                long asked = engine.gate.now();
                part.acquire();
                long granted = engine.gate.now();
                witness.enter(weight);
                if (engine.queued && witness.everReleased) {
                    granted(granted - witness.released);
                }
                engine.gate.pass();
                witness.leave(weight);
                witness.released = engine.gate.now();
                witness.everReleased = true;
                verb = "release";
                part.release();
                ended(engine.gate.now() - asked, n == 0);
            }
        } catch (Throwable e) {
            engine.fail(verb + ": " + e);
        }
    }

    synchronized void begin() {
        on = true;
        cycles = 0;
        cycle = new Times();
        handOver = new Times();
    }

    synchronized int count() {
        return cycles;
    }

    /** Ends recording; returns how many cycles there were. */
    synchronized int end(StringBuilder cycleTimes, StringBuilder handOverTimes) {
        on = false;
        cycle.append(cycleTimes);
        handOver.append(handOverTimes);
        return cycles;
    }

    private synchronized void granted(long took) {
        if (on) {
            handOver.add(took);
        }
    }

    private synchronized void ended(long took, boolean first) {
        if (on) {
            cycles++;
            if (!first) {
                cycle.add(took);
            }
        }
    }

    /** Nanoseconds. */
    private static final class Times {
        private long[] all = {};
        private int size;

        void add(long took) {
            if (size == all.length) {
                all = Arrays.copyOf(all, Math.max(FIRST_SIZE, 2 * size));
            }
            all[size++] = took;
        }

        void append(StringBuilder to) {
            for (int i = 0; i < size; i++) {
                to.append(to.length() == 0 ? "" : ",").append(all[i]);
            }
        }
    }
}
