import java.util.ArrayList;
import java.util.List;

/** The contenders of this process. */
final class Engine {
    private static final int ENOUGH = 5;

    final Gate gate = new Gate();
    final boolean queued;
    private final List<Witness> witnesses = new ArrayList<>();
    private final List<Player> players = new ArrayList<>();
    private final List<String> errors = new ArrayList<>(); // guarded by itself
    private long began;

    Engine(int locks, long limit, boolean queued) {
        this.queued = queued;
        for (int i = 0; i < locks; i++) {
            witnesses.add(new Witness(limit));
        }
    }

    Witness witness(int lock) {
        return witnesses.get(lock);
    }

    void add(Player player) {
        players.add(player);
    }

    void fail(String what) {
        synchronized (errors) {
            if (errors.size() < ENOUGH) {
                errors.add(what.replaceAll("[^ -~]|[\"\\\\]", " "));
            }
        }
    }

    void begin() {
        players.forEach(Player::begin);
        began = gate.now();
    }

    int count() {
        return players.stream().mapToInt(Player::count).sum();
    }

    /** The result as JSON. */
    String end() {
        long nanos = gate.now() - began;
        StringBuilder cycle = new StringBuilder();
        StringBuilder handOver = new StringBuilder();
        int cycles = 0;
        for (Player player : players) {
            cycles += player.end(cycle, handOver);
        }
        long overlaps = witnesses.stream().mapToLong(w -> w.overlaps.get()).sum();
        String failed;
        synchronized (errors) {
            failed = errors.isEmpty() ? "" : "\"" + String.join("\",\"", errors) + "\"";
        }
        return String.format("{\"cycles\":%d,\"nanos\":%d,\"overlaps\":%d,\"errors\":[%s],\"cycle\":[%s],"
                + "\"handover\":[%s],\"witnessed\":true}", cycles, nanos, overlaps, failed, cycle, handOver);
    }
}
