import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;

/** An InterProcessMultiLock. */
final class Multi implements Lock {
    private final List<Lock> members;
    private final InterProcessMultiLock multi;

    Multi(List<Lock> members) {
        this.members = members;
        this.multi = new InterProcessMultiLock(members.stream().map(Lock::member).toList());
    }

    /** Curator gives each member the whole time. */
    @Override
    public List<String> acquire(long waitMillis, int permits) throws Exception {
        Lock.one(permits);
        if (waitMillis < 0) {
            multi.acquire();
        } else if (!multi.acquire(waitMillis, TimeUnit.MILLISECONDS)) {
            return null;
        }
        List<String> nodes = new ArrayList<>();
        for (Lock member : members) {
            nodes.addAll(member.nodes());
        }
        return nodes;
    }

    @Override
    public void release() throws Exception {
        multi.release();
    }

    @Override
    public Collection<String> participants() throws Exception {
        List<String> all = new ArrayList<>();
        for (Lock member : members) {
            all.addAll(member.participants());
        }
        return all;
    }
}
