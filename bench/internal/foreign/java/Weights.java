import java.util.Map;

/** How much of a lock may be held, and what one acquire takes of it. */
record Weights(long limit, long lock, long write) {
    static Weights of(Map<String, String> spec) {
        long contenders = Long.parseLong(spec.get("contenders"));
        switch (spec.get("kind")) {
            case "rw":
                return new Weights(contenders, 1, contenders);
            case "semaphore":
                return new Weights(Long.parseLong(spec.get("limit")), Long.parseLong(spec.get("permits")), 0);
            case "counter":
            case "promoted":
                return new Weights(contenders, 1, 0);
            default:
                return new Weights(1, 1, 0);
        }
    }
}
