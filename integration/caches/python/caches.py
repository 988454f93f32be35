"""kazoo's caches, which take one command a line and answer each with one line."""
import logging
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.cache import TreeCache
from kazoo.retry import KazooRetry

WAIT_SECONDS = 30
POLL_SECONDS = 0.01
SESSION_SECONDS = 10


class Caches:
    """A TreeCache of a directory, a ChildrenWatch of it and a DataWatch of its node "value"."""

    def __init__(self, address, root):
        self.client = KazooClient(hosts=address, timeout=SESSION_SECONDS,
                                  connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1.5, max_delay=1))
        self.client.start(WAIT_SECONDS)
        self.root = root
        self.names = []
        self.value = None
        self.held = []
        self.tree = TreeCache(self.client, root)
        self.tree.start()
        self.client.ChildrenWatch(root)(self.see_children)
        self.client.DataWatch(root + "/value")(self.see_data)

    def see_children(self, names):
        self.names = sorted(names)

    def see_data(self, data, stat):
        self.value = data

    def walk(self, path):
        data = self.tree.get_data(path)
        if data is None:
            return []
        found = ["%s=%s" % (path[len(self.root):], data.data.decode())]
        for name in sorted(self.tree.get_children(path, [])):
            found += self.walk(path + "/" + name)
        return found

    def seen(self):
        value = "none" if self.value is None else self.value.decode()
        return "%s|%s|%s" % (" ".join(self.walk(self.root)), " ".join(self.names), value)

    def obey(self, verb, *args):
        if verb == "sees":  # waits until all three have seen this
            end = time.monotonic() + WAIT_SECONDS
            while self.seen() != args[0]:
                if time.monotonic() > end:
                    raise TimeoutError("kazoo sees " + self.seen())
                time.sleep(POLL_SECONDS)
            return ""
        if verb == "create":
            self.client.create(self.root + args[0], args[1].encode())
            return ""
        if verb == "set":
            self.client.set(self.root + args[0], args[1].encode())
            return ""
        if verb == "delete":
            self.client.delete(self.root + args[0])
            return ""
        if verb == "recipes":  # makes one node of each
            party = self.client.Party(self.root + "/party", "member")
            party.join()
            counter = self.client.Counter(self.root + "/counter")
            counter += 7
            lock = self.client.Lock(self.root + "/lock", "holder")
            lock.acquire()
            self.client.Queue(self.root + "/queue").put(b"item")
            self.held += [party, lock]
            return "%d" % self.client.client_id[0]
        raise ValueError("unknown command " + verb)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    caches = Caches(sys.argv[1], sys.argv[2])
    for line in sys.stdin:
        try:
            said = "ok " + caches.obey(*line.rstrip("\n").split("\t"))
        except Exception as e:
            said = "error %s: %s" % (type(e).__name__, " ".join(str(e).split()))
        sys.stdout.write(said.strip() + "\n")
        sys.stdout.flush()


main()
