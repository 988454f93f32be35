"""Kazoo clients and their locks, which take commands and answer as the Java peer does."""
import logging
import queue
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.retry import KazooRetry

WAIT_SECONDS = 30
POLL_SECONDS = 0.02


class Peer:
    def __init__(self):
        self.out = threading.Lock()
        self.threads = {}
        self.clients = {}
        self.locks = {}

    def say(self, line):
        with self.out:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def dispatch(self, line):
        """Hands a line to its thread; false ends the process."""
        prefix = ""
        if line.startswith("@"):
            prefix, _, line = line.partition(" ")
            prefix += " "
        if line == "quit":
            for client in list(self.clients):
                self.answer("close " + client)
            self.say(prefix + "ok")
            return False
        if prefix not in self.threads:
            self.threads[prefix] = queue.Queue()
            threading.Thread(target=self.serve, args=(prefix,), daemon=True).start()
        self.threads[prefix].put(line)
        return True

    def serve(self, prefix):
        while True:
            self.say(prefix + self.answer(self.threads[prefix].get()))

    def answer(self, line):
        try:
            verb, *args = line.split()
            said = getattr(self, "do_" + verb)(*args)
        except Exception as e:
            name = "%s.%s" % (type(e).__module__, type(e).__name__)
            return "error " + " ".join(("%s: %s" % (name, e)).split())
        return "false" if said is None else ("ok " + said).strip()

    def do_connect(self, name, address, millis):
        client = KazooClient(hosts=address, timeout=int(millis) / 1000,
                             connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1.5, max_delay=1))
        client.start(WAIT_SECONDS)
        self.clients[name] = client
        return self.do_session(name)

    def do_session(self, name):
        """Waits for a session: between two there is none."""
        end = time.monotonic() + WAIT_SECONDS
        while not self.clients[name].connected or not self.clients[name].client_id[0]:
            if time.monotonic() > end:
                raise TimeoutError("no session in %d s" % WAIT_SECONDS)
            time.sleep(POLL_SECONDS)
        return "0x%x" % (self.clients[name].client_id[0] & (1 << 64) - 1)

    def do_close(self, name):
        client = self.clients.pop(name)
        client.stop()
        client.close()
        return ""

    def do_make(self, name, client, kind, path, *args):
        """Makes a lock with these extra_lock_patterns, or a semaphore with so many leases."""
        kinds = {"lock": "Lock", "read": "ReadLock", "write": "WriteLock", "semaphore": "Semaphore"}
        recipe = getattr(self.clients[client], kinds[kind])
        more = {"max_leases": int(args[0])} if kind == "semaphore" else {"extra_lock_patterns": args}
        # A lock of kazoo's is for one acquire at a time, so each thread has its own.
        self.locks[name] = (threading.local(), lambda: recipe(path, "kazoo", **more))
        return ""

    def lock(self, name):
        mine, make = self.locks[name]
        if not hasattr(mine, "lock"):
            mine.lock = make()
        return mine.lock

    def do_acquire(self, name, millis, permits):
        if permits != "1":
            raise ValueError("has one permit, not " + permits)
        lock = self.lock(name)
        try:
            if not lock.acquire(timeout=None if int(millis) < 0 else int(millis) / 1000):
                return None
        except LockTimeout:
            return None
        return lock.path + "/" + lock.node if hasattr(lock, "node") else lock.create_path

    def do_release(self, name):
        try:
            self.lock(name).release()
        except Exception:
            del self.locks[name][0].lock  # it believes to hold for ever and would acquire no more
            raise
        return ""

    def do_participants(self, name):
        lock = self.lock(name)
        return " ".join(sorted(lock.path + "/" + n for n in lock.client.get_children(lock.path)))


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    peer = Peer()
    for line in sys.stdin:
        if not peer.dispatch(line.strip()):
            break


main()
