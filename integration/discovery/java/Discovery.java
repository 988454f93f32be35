import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.springframework.cloud.zookeeper.discovery.ZookeeperInstance;

/** One client with one ServiceDiscovery of Curator's. Each line of the input is a command, and is answered by a line. */
public final class Discovery {
    private static final String SERVICE = "orders";

    private final CuratorFramework client;
    private final Class<Object> payload;
    private final ServiceDiscovery<Object> discovery;
    private final ServiceCache<Object> cache;
    private final ServiceProvider<Object> provider;
    private final Map<String, ServiceInstance<Object>> own = new HashMap<>();
    private Thread asking;
    private volatile boolean asked;
    private int answers;
    private final TreeSet<String> failures = new TreeSet<>();

    @SuppressWarnings("unchecked") // a payload is whatever its class is
    private Discovery(String servers, String base, String kind) throws Exception {
        client = CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new RetryNTimes(50, 100));
        client.start();
        client.blockUntilConnected();
        payload = (Class<Object>) (Class<?>) Map.of("Void", Void.class, "Map", Map.class, "String", String.class,
            "Spring", ZookeeperInstance.class).get(kind);
        discovery = ServiceDiscoveryBuilder.builder(payload).client(client).basePath(base)
            .serializer(new JsonInstanceSerializer<>(payload, kind.equals("Spring"))).build(); // Spring's is compatible
        discovery.start();
        cache = discovery.serviceCacheBuilder().name(SERVICE).build();
        cache.start();
        provider = discovery.serviceProviderBuilder().serviceName(SERVICE).build();
        provider.start();
    }

    public static void main(String[] args) throws Exception {
        Discovery d = new Discovery(args[0], args[1], args[2]);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = d.run(line.split(" "));
            } catch (Exception | LinkageError e) {
                answer = "error " + e.toString().replace('\n', ' ');
            }
            System.out.println(answer);
        }
        System.exit(0);
    }

    private String run(String[] words) throws Exception {
        switch (words[0]) {
            case "session":
                return Long.toHexString(client.getZookeeperClient().getZooKeeper().getSessionId());
            case "register":
                own.put(words[1], instance(words[1], words[2], Integer.parseInt(words[3]), true));
                discovery.registerService(own.get(words[1]));
                return "done";
            case "update":
                ServiceInstance<Object> was = own.get(words[1]);
                own.put(words[1], instance(words[1], words[2], Integer.parseInt(words[3]), Boolean.parseBoolean(words[4])));
                discovery.updateService(own.get(words[1]));
                return "done " + was.getRegistrationTimeUTC();
            case "unregister":
                discovery.unregisterService(own.remove(words[1]));
                return "done";
            case "query":
                return texts(discovery.queryForInstances(SERVICE));
            case "cache":
                return texts(cache.getInstances());
            case "provider":
                ServiceInstance<Object> one = provider.getInstance();
                return texts(provider.getAllInstances()) + " one " + (one != null);
            case "uri":
                StringBuilder all = new StringBuilder();
                for (ServiceInstance<Object> i : discovery.queryForInstances(SERVICE)) {
                    all.append(i.getUriSpec() == null ? "none" : i.buildUriSpec()).append(' ');
                }
                return all.toString();
            case "ask":
                ask();
                return "done";
            case "asked":
                asked = true;
                asking.join();
                return (answers > 0) + " " + failures;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** Queries until it is told to stop, and notes what is no answer. */
    private void ask() {
        asked = false;
        asking = new Thread(() -> {
            while (!asked) {
                try {
                    for (ServiceInstance<Object> i : discovery.queryForInstances(SERVICE)) {
                        if (i.getPort() == null || i.getAddress() == null) {
                            failures.add("no address");
                        }
                    }
                    answers++;
                } catch (Exception e) {
                    failures.add(e.getClass().getName());
                }
            }
        });
        asking.start();
    }

    private ServiceInstance<Object> instance(String id, String address, int port, boolean enabled) throws Exception {
        Object load = null;
        Map<String, String> metadata = new TreeMap<>(Map.of("zone", "a"));
        if (payload.equals(Map.class)) {
            load = new HashMap<>(metadata);
        } else if (payload.equals(String.class)) {
            load = "zone=a";
        } else if (payload.equals(ZookeeperInstance.class)) {
            metadata.put("instance_status", enabled ? "UP" : "OUT_OF_SERVICE");
            load = new ZookeeperInstance("application-1", SERVICE, metadata);
        }
        return ServiceInstance.builder().name(SERVICE).id(id).address(address).port(port).payload(load)
            .enabled(enabled).uriSpec(new UriSpec("{scheme}://{address}:{port}")).build();
    }

    private static String texts(Collection<ServiceInstance<Object>> all) {
        TreeSet<String> texts = new TreeSet<>();
        for (ServiceInstance<Object> i : all) {
            Object load = i.getPayload();
            String text = load instanceof Map<?, ?> map ? new TreeMap<>(map).toString() : String.valueOf(load);
            texts.add(i.getId() + "=" + i.getAddress() + ":" + i.getPort() + (i.isEnabled() ? "" : " disabled") + " " + text);
        }
        return List.copyOf(texts).toString();
    }
}
