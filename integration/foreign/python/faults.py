"""Connections are cut, replies lost, sessions ended."""
import time

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState
from world import Task


def reconnect(w):
    a = w.client()
    states = []
    a.add_listener(states.append)
    a.create(w.path("e"), b"", ephemeral=True, makepath=True)
    session = a.client_id[0]
    for i in range(3):
        w.ask("cut")
        w.wait("the connection, have %s" % states, lambda: states.count(KazooState.CONNECTED) == i + 1)
        w.see("works", a.get_children(w.path()))
    w.see("states", states)
    w.see("same session", session == a.client_id[0])
    w.tree("after")


def watchers(w):
    a = w.client()
    other = w.witness()
    other.create(w.path("data"), b"1", makepath=True)
    other.create(w.path("folder"))
    data, children, plain = [], [], []
    a.DataWatch(w.path("data"))(lambda d, s: data.append(d))
    a.ChildrenWatch(w.path("folder"))(lambda c: children.append(sorted(c)))
    a.get(w.path("data"), lambda e: plain.append((e.type, e.state)))
    w.watches("before", 1)
    w.ask("refuse")
    w.ask("cut")
    other.set(w.path("data"), b"2")
    other.create(w.path("folder/a"))
    w.ask("accept")
    w.wait("the data, have %s" % data, lambda: data == [b"1", b"2"])
    w.wait("the children, have %s" % children, lambda: children == [[], ["a"]])
    w.watches("after", 1)
    w.wait("the plain watcher", lambda: plain)  # it stands in line behind the others, which wait for the connection
    w.see("plain", plain)
    other.set(w.path("data"), b"3")
    w.wait("the next data", lambda: data == [b"1", b"2", b"3"])


def held(w):
    path = w.path("lock")
    a = w.client()
    one, two = a.Lock(path, "one"), w.client().Lock(path, "two")
    one.acquire()
    waiting = Task(two.acquire)
    w.wait_children(path, 2)
    w.watches("before", 1)
    w.ask("cut")
    w.wait("the connection", lambda: a.retry(a.exists, path) is not None)
    w.tree("after the cut")
    w.check(not waiting.done(), "the waiter passed the holder")
    a.retry(one.release)
    w.see("waited", waiting.get(15))
    two.release()
    w.wait_children(path, 0)


def lost(w):
    a = w.client()
    a.ensure_path(w.path("lock"))
    for op in ("create", "getChildren"):
        w.ask("lose", op, w.path("lock"))
        mine = a.Lock(w.path("lock"), "mine")
        w.see("acquired with a lost " + op, mine.acquire())
        w.tree("held " + op)
        mine.release()
        w.wait_children(w.path("lock"), 0)
    a.create(w.path("n"), b"")
    w.ask("lose", "setData", w.path("n"))
    w.see("set", w.outcome(lambda: a.retry(a.set, w.path("n"), b"1").version))
    w.ask("lose", "delete", w.path("n"))
    w.see("delete", w.outcome(lambda: a.retry(a.delete, w.path("n"))))
    w.ask("lose", "setData", w.path("lock"))
    w.see("without a retry", w.outcome(lambda: a.set(w.path("lock"), b"1").version))


def expiry(w):
    """A twin closes the session behind the client's back."""
    a = w.client()
    states = []
    a.add_listener(states.append)
    a.create(w.path("e"), b"", ephemeral=True, makepath=True)
    data = []
    a.DataWatch(w.path("e"))(lambda d, s: data.append(d))
    mine = a.Lock(w.path("lock"), "mine")
    mine.acquire()
    next = w.witness().Lock(w.path("lock"), "next")
    waiting = Task(next.acquire)
    w.wait_children(w.path("lock"), 2)
    session = a.client_id  # none while there is no connection, and the twin takes it away
    w.ask("refuse")
    twin = KazooClient(hosts=w.direct, client_id=session, timeout=10)
    twin.start()
    w.see("twin has the session", twin.client_id[0] == session[0])
    twin.stop()
    twin.close()
    w.ask("cut")
    w.ask("accept")
    w.see("waited", waiting.get(15))
    w.wait("the new session, have %s" % states, lambda: states and states[-1] == KazooState.CONNECTED)
    w.see("states", states)
    w.wait("the watcher, have %s" % data, lambda: data == [b"", None])
    w.see("works", sorted(a.get_children(w.path())))
    w.tree("after")
    next.release()


def silence(w):
    a = w.client(timeout=4)  # with less, a busy machine cuts the client off before the step does
    states = []
    a.add_listener(states.append)
    a.create(w.path("e"), b"", ephemeral=True, makepath=True)
    begun = time.monotonic()
    a.exists("/")  # the server hears of the client last
    w.ask("stall")
    w.wait("the end of the session", lambda: not w.witness().exists(w.path("e")))
    took = time.monotonic() - begun
    w.check(4 <= took < 9, "ended after %s s" % took)
    w.ask("cut")
    w.ask("resume")
    w.wait("reconnection, have %s" % states, lambda: KazooState.LOST in states and states[-1] == KazooState.CONNECTED)
    w.see("states", states)


STEPS = [("k-reconnect", reconnect), ("k-reconnect-watchers", watchers), ("k-reconnect-lock", held), ("k-lost", lost),
         ("k-expiry", expiry), ("k-expiry-by-silence", silence)]
