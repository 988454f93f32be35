import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.CreateMode;

/** A node that Curator keeps registered: a PersistentNode, or a GroupMember. */
final class Registered {
    private static final int WAIT_SECONDS = 30;

    private final PersistentNode node;
    private final GroupMember member;

    private Registered(PersistentNode node, GroupMember member) {
        this.node = node;
        this.member = member;
    }

    /** Arguments: mode, whether it is protected, path, data. */
    static Registered node(CuratorFramework client, List<String> args) throws Exception {
        PersistentNode node = new PersistentNode(client, CreateMode.valueOf(args.get(0)),
                Boolean.parseBoolean(args.get(1)), args.get(2), bytes(args.get(3)));
        node.start();
        if (!node.waitForInitialCreate(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not created in " + WAIT_SECONDS + " s: " + args);
        }
        return new Registered(node, null);
    }

    /** Arguments: path of the group, id, data. */
    static Registered member(CuratorFramework client, List<String> args) {
        GroupMember member = new GroupMember(client, args.get(0), args.get(1), bytes(args.get(2)));
        member.start();
        return new Registered(null, member);
    }

    String path() {
        return node.getActualPath();
    }

    void set(String data) throws Exception {
        if (node != null) {
            node.setData(bytes(data));
        } else {
            member.setThisData(bytes(data));
        }
    }

    /** The members as "id=data", in order. */
    String members() {
        Map<String, byte[]> now = new TreeMap<>(member.getCurrentMembers());
        return now.entrySet().stream()
                .map(e -> e.getKey() + "=" + new String(e.getValue(), StandardCharsets.UTF_8))
                .collect(Collectors.joining(" "));
    }

    void close() throws Exception {
        if (node != null) {
            node.close();
        } else {
            member.close();
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
