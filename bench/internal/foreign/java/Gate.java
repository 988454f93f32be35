/** Stops contenders, and its clock with them. It begins closed. */
final class Gate {
    // guarded by this
    private boolean shut = true;
    private long lost; // nanoseconds that it was closed before it opened last
    private long since = System.nanoTime(); // closed since

    /** The time in nanoseconds that the gate has been open, and a constant. */
    synchronized long now() {
        return (shut ? since : System.nanoTime()) - lost;
    }

    synchronized void open() {
        if (shut) {
            lost += System.nanoTime() - since;
            shut = false;
            notifyAll();
        }
    }

    synchronized void close() {
        if (!shut) {
            since = System.nanoTime();
            shut = true;
        }
    }

    synchronized void pass() throws InterruptedException {
        while (shut) {
            wait();
        }
    }
}
