"""What one step works with: clients, threads, a folder of its own, and ways to look and to say."""
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

SESSION_SECONDS = 10
WAIT_SECONDS = 15


class Task(threading.Thread):
    """A thread whose result or exception is waited for."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call = call
        self.result = None
        self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except BaseException as e:
            self.error = e

    def done(self):
        return not self.is_alive()

    def get(self, timeout=10):
        self.join(timeout)
        if self.is_alive():
            raise AssertionError("a thread has not ended in %s s" % timeout)
        if self.error is not None:
            raise self.error
        return self.result


class World:
    def __init__(self, steps, name, proxied, direct):
        self.steps = steps
        self.name = name
        self.proxied = proxied
        self.direct = direct
        self.open = []
        self._witness = None

    def client(self, hosts=None, timeout=SESSION_SECONDS, **kw):
        """A connected client behind the proxy."""
        retry = dict(max_tries=300, delay=0.05, backoff=1, max_jitter=0.01)
        client = KazooClient(hosts=hosts or self.proxied, timeout=timeout, connection_retry=retry,
                             command_retry=KazooRetry(**retry), **kw)
        self.open.append(client)
        # start returns before the listeners are told, and one that is added meanwhile would hear of it too.
        told = threading.Event()
        client.add_listener(lambda state: told.set())
        client.start(WAIT_SECONDS)
        self.check(told.wait(WAIT_SECONDS), "no word of the connection")
        return client

    def witness(self):
        """A client that no fault reaches, to look at the server and to act as somebody else."""
        if self._witness is None:
            self._witness = self.client(hosts=self.direct)
        return self._witness

    def path(self, rest=""):
        return "/" + self.name + ("/" + rest if rest else "")

    def close(self):
        for client in reversed(self.open):
            try:
                client.stop()
                client.close()
            except Exception as e:
                print("close:", e, flush=True, file=__import__("sys").stderr)
        self.open = []

    def see(self, key, value):
        """Reports an observation, which must be the same on every server."""
        self.steps.say("see %s %s %s" % (self.name, key.replace(" ", "_"), " ".join(str(value).split())))

    def ask(self, verb, *args):
        return self.steps.ask(" ".join(["ask", self.name, verb] + [str(a).replace(" ", "_") for a in args]))

    def tree(self, label):
        self.ask("tree", label)

    def loose(self):
        """Leaves the counts of changes out of this step's trees: they depend on who was faster."""
        self.ask("loose")

    def watches(self, label, count):
        """Waits for this many watches on nodes of this step's folder and records them."""
        self.ask("watches", label, count)

    def check(self, good, otherwise):
        if not good:
            raise AssertionError(otherwise)

    def wait(self, what, condition):
        end = time.monotonic() + WAIT_SECONDS
        while not condition():
            self.check(time.monotonic() < end, "waited in vain: " + what)
            time.sleep(0.005)

    def children(self, path):
        try:
            return sorted(self.witness().get_children(path))
        except NoNodeError:
            return []

    def wait_children(self, path, count):
        self.wait("%d children of %s" % (count, path), lambda: len(self.children(path)) == count)

    def outcome(self, call, *args, **kw):
        """The name of the exception that the call ends with, or what it returns."""
        try:
            return str(call(*args, **kw))
        except (KazooException, KazooTimeoutError, ValueError, RuntimeError, TypeError) as e:
            return type(e).__name__
