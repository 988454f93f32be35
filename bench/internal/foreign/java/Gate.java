/** Stops contenders, and its clock with them. It begins closed. */
final class Gate {
    private volatile boolean shut = true;
    private volatile long lost; // nanoseconds that it was closed before now
    private long since = System.nanoTime();

    /** The time in nanoseconds that the gate has been open, and a constant. */
    long now() {
        return System.nanoTime() - lost;
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

    void pass() throws InterruptedException {
        if (!shut) {
            return;
        }
        synchronized (this) {
            while (shut) {
                wait();
            }
        }
    }
}
