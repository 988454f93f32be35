import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Runs named steps with Curator against one server and says on standard output how each fares:
 * "step NAME" when it begins, "see NAME KEY VALUE" for what it has observed, "ask NAME VERB ARGS" for
 * what the one who started the program must do and answer on standard input, and at the end
 * "ok NAME" or "fail NAME why".
 */
final class Steps {
    private static final long LIMIT_SECONDS = 40;

    interface Body {
        void run(World world) throws Exception;
    }

    private record Step(String name, Body body) {
    }

    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final List<Step> steps = new ArrayList<>();

    void add(String name, Body body) {
        steps.add(new Step(name, body));
    }

    /** Arguments: the address behind the proxy, the server's own address, the steps to run, none for all. */
    public static void main(String[] args) throws Exception {
        Steps steps = new Steps();
        Locks.add(steps);
        MoreLocks.add(steps);
        Leaders.add(steps);
        Barriers.add(steps);
        Counters.add(steps);
        Caches.add(steps);
        TreeCaches.add(steps);
        Nodes.add(steps);
        Queues.add(steps);
        Transactions.add(steps);
        Rules.add(steps);
        Owned.add(steps);
        Handle.add(steps);
        Watching.add(steps);
        Faults.add(steps);
        LostReplies.add(steps);
        Expiry.add(steps);
        Sweeping.add(steps);
        Set<String> wanted = new HashSet<>(Arrays.asList(args).subList(2, args.length));
        for (Step step : steps.steps) {
            if (wanted.isEmpty() ? !step.name.startsWith("sweep-") : wanted.contains(step.name)) {
                steps.run(step, args[0], args[1]);
            }
        }
        Runtime.getRuntime().halt(0); // a step that hung has threads left
    }

    private void run(Step step, String proxied, String direct) throws InterruptedException {
        say("step " + step.name);
        Throwable[] failure = new Throwable[1];
        World world = new World(this, step.name, proxied, direct);
        Thread thread = new Thread(() -> {
            try {
                step.body.run(world);
                world.ask("tree", "end");
                world.close();
            } catch (Throwable e) {
                failure[0] = e;
            }
        }, "step " + step.name);
        thread.start();
        thread.join(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS));
        if (thread.isAlive()) {
            failure[0] = new AssertionError("still at " + Arrays.toString(thread.getStackTrace()));
            thread.interrupt();
        }
        if (failure[0] == null) {
            say("ok " + step.name);
            return;
        }
        world.close();
        say("fail " + step.name + " " + text(failure[0]));
    }

    private static String text(Throwable e) {
        StringBuilder text = new StringBuilder();
        for (Throwable t = e; t != null; t = t.getCause()) {
            text.append(text.length() == 0 ? "" : " caused by ").append(t);
            for (StackTraceElement at : t.getStackTrace()) {
                if (at.getFileName() != null && at.getModuleName() == null && !at.getClassName().contains(".")) {
                    text.append(" at ").append(at.getFileName()).append(':').append(at.getLineNumber());
                    break;
                }
            }
        }
        return text.toString().replaceAll("\\s+", " ");
    }

    synchronized void say(String line) {
        out.println(line);
    }

    synchronized String ask(String line) {
        out.println(line);
        try {
            String answer = in.readLine();
            if (answer == null || !answer.startsWith("done")) {
                throw new AssertionError(line + ": " + answer);
            }
            return answer.substring("done".length()).trim();
        } catch (java.io.IOException e) {
            throw new AssertionError(line, e);
        }
    }
}
