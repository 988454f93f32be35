"""Locks, semaphores and leases."""
from datetime import timedelta

from kazoo.exceptions import LockTimeout
from kazoo.security import CREATOR_ALL_ACL
from world import Task


def lock(w):
    path = w.path("lock")
    a, b = w.client(), w.client()
    one, two = a.Lock(path, "first"), b.Lock(path, "second")
    w.check(one.acquire(), "not acquired")
    w.tree("held")
    w.see("try", two.acquire(blocking=False))
    w.tree("after a try")
    try:
        two.acquire(timeout=0.2)
        w.see("timed", "acquired")
    except LockTimeout:
        w.see("timed", "LockTimeout")
    w.wait_children(path, 1)
    waiting = Task(two.acquire)
    w.wait_children(path, 2)
    w.watches("one waits", 1)
    w.see("contenders", one.contenders())
    w.tree("one waits")
    w.see("release", one.release())
    w.see("waited", waiting.get())
    w.tree("handed over")
    w.see("second release", one.release())
    two.release()
    w.see("children", w.children(path))
    with one:
        w.tree("with")


def line(w):
    path = w.path("lock")
    first = w.client().Lock(path, "first")
    first.acquire()
    order, tasks = [], []
    for i in range(5):
        mine = w.client().Lock(path, "id%d" % i)

        def work(mine=mine, i=i):
            with mine:
                order.append(i)

        tasks.append(Task(work))
        w.wait_children(path, i + 2)
    w.watches("each its predecessor", 5)
    w.see("contenders", first.contenders())
    w.tree("line")
    first.release()
    for t in tasks:
        t.get()
    w.see("order", order)
    w.wait_children(path, 0)


def load(w):
    path = w.path("lock")
    inside, rounds = [], []

    def work(client):
        mine = client.Lock(path, "x")
        for _ in range(10):
            with mine:
                inside.append(1)
                w.check(len(inside) == 1, "two holders")
                rounds.append(1)
                inside.pop()

    for t in [Task(lambda c=w.client(): work(c)) for _ in range(4)]:
        t.get(30)
    w.see("rounds", len(rounds))
    w.wait_children(path, 0)


def cancel(w):
    path = w.path("lock")
    one, two = w.client().Lock(path, "one"), w.client().Lock(path, "two")
    one.acquire()
    waiting = Task(two.acquire)
    w.wait_children(path, 2)
    w.watches("one waits", 1)
    two.cancel()
    w.see("cancelled", w.outcome(waiting.get))
    w.wait_children(path, 1)
    w.tree("after")
    one.release()


def mixed(w):
    """A kazoo lock that minds the nodes of Curator's kind."""
    path = w.path("lock")
    w.witness().create(path + "/_c_x-lock-", b"", ephemeral=True, sequence=True, makepath=True)
    mine = w.client().Lock(path, "kazoo", extra_lock_patterns=["-lock-"])
    w.see("try", mine.acquire(blocking=False))
    waiting = Task(mine.acquire)
    w.wait_children(path, 2)
    w.watches("kazoo waits", 1)
    foreign = [n for n in w.children(path) if n.startswith("_c_")][0]
    w.witness().delete(path + "/" + foreign)
    w.see("acquired", waiting.get())
    mine.release()


def read_write(w):
    path = w.path("lock")
    clients = [w.client() for _ in range(4)]
    r1, r2 = clients[0].ReadLock(path, "r1"), clients[1].ReadLock(path, "r2")
    writer, late = clients[2].WriteLock(path, "w"), clients[3].ReadLock(path, "late")
    r1.acquire()
    r2.acquire()
    w.tree("two read")
    w.see("write beside readers", writer.acquire(blocking=False))
    writing = Task(writer.acquire)
    w.wait_children(path, 3)
    w.watches("the writer waits", 1)
    reading = Task(late.acquire)
    w.wait_children(path, 4)
    w.watches("a late reader waits", 2)
    w.see("contenders", r1.contenders())
    w.tree("line")
    r1.release()
    r2.release()
    w.see("written", writing.get())
    w.check(not reading.done(), "the reader passed the writer")
    writer.release()
    w.see("read", reading.get())
    late.release()
    w.wait_children(path, 0)


def semaphore(w):
    path = w.path("semaphore")
    a, b = w.client(), w.client()
    s = [c.Semaphore(path, "id%d" % i, max_leases=2) for i, c in enumerate((a, a, b))]
    w.see("acquired", "%s %s" % (s[0].acquire(), s[1].acquire()))
    w.tree("all leased")
    w.see("holders", sorted(s[0].lease_holders()))
    w.see("more", s[2].acquire(blocking=False))
    w.see("in time", w.outcome(s[2].acquire, timeout=0.2))
    waiting = Task(s[2].acquire)
    w.wait_children(path + "-__lock__", 1)  # it is in line for the next lease
    s[0].release()
    w.see("waited", waiting.get())
    w.tree("handed over")
    w.see("another limit", w.outcome(b.Semaphore(path, "x", max_leases=3).acquire))
    s[1].release()
    s[2].release()
    w.see("holders in the end", s[0].lease_holders())


def owned(w):
    """A lock whose nodes belong to a digest identity."""
    path = w.path("lock")
    w.witness().ensure_path(w.path())
    members = [w.client(auth_data=[("digest", "me:secret")], default_acl=CREATOR_ALL_ACL) for _ in range(2)]
    one, two = [c.Lock(path, "id%d" % i) for i, c in enumerate(members)]
    one.acquire()
    w.see("ACL", members[1].get_acls(path + "/" + one.node)[0])
    w.see("stranger", w.outcome(w.client().Lock(path, "x").acquire, blocking=False))
    w.see("stranger lists", w.outcome(w.witness().get_children, path))
    waiting = Task(two.acquire)
    w.wait("two in line", lambda: len(members[0].get_children(path)) == 2)
    w.watches("one waits", 1)
    w.tree("one waits")
    one.release()
    w.see("waited", waiting.get())
    two.release()


def lease(w):
    a, b = w.client(), w.client()
    one = a.NonBlockingLease(w.path("lease"), timedelta(minutes=5), identifier="one")
    two = b.NonBlockingLease(w.path("lease"), timedelta(minutes=5), identifier="two")
    w.see("one and two", "%s %s" % (bool(one), bool(two)))
    w.see("again", bool(a.NonBlockingLease(w.path("lease"), timedelta(minutes=5), identifier="one")))
    many = [bool(c.MultiNonBlockingLease(2, w.path("many"), timedelta(minutes=5), identifier="id%d" % i))
            for i, c in enumerate((a, b, w.client()))]
    w.see("two of three", many)
    w.see("nodes", [w.children(p) for p in (w.path(), w.path("many"))])


STEPS = [("k-lock", lock), ("k-lock-line", line), ("k-lock-load", load), ("k-lock-cancel", cancel), ("k-lock-mixed", mixed),
         ("k-read-write", read_write), ("k-semaphore", semaphore), ("k-lock-owned", owned), ("k-lease", lease)]
