import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;

/** Works on the paths of the soak by Curator, until standard input ends. */
public class Beside {
  interface Work {
    void once() throws Exception;
  }

  static final AtomicLong done = new AtomicLong();
  static final AtomicLong failed = new AtomicLong();

  static void repeat(Work work) {
    Thread thread = new Thread(() -> {
      while (true) {
        try {
          Thread.sleep((long) (Math.random() * 100));
          work.once();
        } catch (Exception e) {
          failed.incrementAndGet();
        }
        done.incrementAndGet();
      }
    });
    thread.setDaemon(true);
    thread.start();
  }

  static void held(InterProcessMutex mutex) throws Exception {
    if (mutex.acquire(20, TimeUnit.SECONDS)) {
      mutex.release();
    }
  }

  public static void main(String[] args) throws Exception {
    String root = args[1];
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], 4000, 4000, new ExponentialBackoffRetry(100, 5));
    client.start();
    client.blockUntilConnected();
    InterProcessMutex mutex = new InterProcessMutex(client, root + "/mutex");
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, root + "/rwlock");
    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, root + "/semaphore", 3);
    DistributedAtomicLong number = new DistributedAtomicLong(client, root + "/number", new RetryNTimes(10, 10));
    repeat(() -> held(mutex));
    repeat(() -> held(lock.readLock()));
    repeat(() -> held(lock.writeLock()));
    repeat(() -> {
      Lease lease = semaphore.acquire(20, TimeUnit.SECONDS);
      if (lease != null) {
        semaphore.returnLease(lease);
      }
    });
    repeat(() -> number.increment());
    while (System.in.read() >= 0) {
    }
    client.close();
    System.out.println("Curator: " + done + " pieces of work, " + failed + " failed");
  }
}
