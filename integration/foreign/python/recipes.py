"""Parties, barriers, queues, elections, counters, partitions."""
from kazoo.recipe.partitioner import PartitionState
from world import Task


def party(w):
    a, b = w.client(), w.client()
    one, two = a.Party(w.path("party"), "one"), b.Party(w.path("party"), "two")
    one.join()
    two.join()
    w.tree("both")
    w.see("members", "%s %d" % (sorted(one), len(two)))
    one.leave()
    w.see("after one left", list(two))
    shallow = a.ShallowParty(w.path("shallow"), "id")
    shallow.join()
    w.see("shallow", list(shallow))
    w.tree("shallow")
    shallow.leave()


def barrier(w):
    a, b = w.client(), w.client()
    one, two = a.Barrier(w.path("barrier")), b.Barrier(w.path("barrier"))
    w.see("open", two.wait(5))
    one.create()
    w.see("created again", w.outcome(one.create))
    w.tree("closed")
    w.see("closed", two.wait(0.2))
    waiting = Task(two.wait)
    w.watches("one waits", 1)
    w.see("removed", one.remove())
    w.see("waited", waiting.get())
    w.see("removed again", one.remove())


def double_barrier(w):
    barriers = [w.client().DoubleBarrier(w.path("barrier"), 3, "id%d" % i) for i in range(3)]
    entering = [Task(b.enter) for b in barriers[:2]]
    w.wait_children(w.path("barrier"), 2)
    w.check(not any(t.done() for t in entering), "entered with two of three")
    w.tree("two of three")
    entering.append(Task(barriers[2].enter))
    for t in entering:
        t.get()
    w.tree("entered")
    leaving = [Task(b.leave) for b in barriers]
    for t in leaving:
        t.get()
    w.see("participating", [b.participating for b in barriers])


def queue(w):
    a, b = w.client(), w.client()
    q = a.Queue(w.path("queue"))
    w.see("empty", "%s %d" % (q.get(), len(q)))
    for i, item in enumerate((b"one", b"two", b"three")):
        q.put(item, 100 - i)
    w.tree("put")
    w.see("length", len(q))
    other = b.Queue(w.path("queue"))
    w.see("got", [other.get(), q.get(), other.get(), q.get()])
    w.see("wrong priority", w.outcome(q.put, b"x", 1000))


def locking_queue(w):
    a, b = w.client(), w.client()
    one, two = a.LockingQueue(w.path("queue")), b.LockingQueue(w.path("queue"))
    one.put(b"low", 200)
    one.put_all([b"x", b"y"], 50)
    w.tree("put")
    w.see("first", one.get(5))
    w.tree("taken")
    w.see("holds", one.holds_lock())
    w.see("second", two.get(5))
    w.see("consumed", one.consume())
    w.see("released", two.release())
    w.see("again", two.get(5))
    w.see("consumed again", two.consume())
    w.see("length", len(one))
    w.see("the rest", [one.get(5), one.consume(), one.get(0.3)])
    waiting = Task(lambda: one.get(10))
    two.put(b"late")
    w.see("waited for", waiting.get(12))
    w.see("consumed at last", one.consume())
    w.tree("empty")


def election(w):
    a, b = w.client(), w.client()
    path = w.path("election")
    led, go = [], []
    one, two = a.Election(path, "one"), b.Election(path, "two")

    def lead(name):
        led.append(name)
        w.wait("the word to go", lambda: name in go)

    first = Task(lambda: one.run(lead, "one"))
    w.wait("a leader", lambda: led == ["one"])
    second = Task(lambda: two.run(lead, "two"))
    w.wait_children(path, 2)
    w.watches("the second waits", 1)
    w.see("contenders", one.contenders())
    w.tree("one leads")
    go.append("one")
    first.get()
    w.wait("the second leader", lambda: led == ["one", "two"])
    w.tree("two leads")
    third = Task(lambda: one.run(lead, "three"))
    w.wait_children(path, 2)
    w.watches("the third waits", 1)
    one.cancel()
    third.get()
    go.append("two")
    second.get()
    w.wait_children(path, 0)


def counter(w):
    a, b = w.client(), w.client()
    one = a.Counter(w.path("counter"))
    one += 5
    one -= 7
    w.see("value", "%s %s %s" % (one.value, one.pre_value, one.post_value))
    w.tree("written")
    floating = a.Counter(w.path("float"), default=1.5)
    floating += 2.25
    w.see("float", floating.value)
    mine = [a.Counter(w.path("sum")), b.Counter(w.path("sum")), w.client().Counter(w.path("sum"))]

    def add(c):
        for _ in range(10):
            c += 1

    for t in [Task(lambda c=c: add(c)) for c in mine]:
        t.get(30)
    w.see("sum", mine[0].value)
    w.see("not a number", w.outcome(lambda: one.__add__("x")))


def partitions(w):
    w.loose()  # on a busy machine one may take all before two has come, and share later
    a, b = w.client(), w.client()
    path = w.path("set")
    one = a.SetPartitioner(path, set=(1, 2, 3, 4), identifier="one", time_boundary=0.3)
    two = b.SetPartitioner(path, set=(1, 2, 3, 4), identifier="two", time_boundary=0.3)

    def settle(*all):
        def step():
            for p in all:
                if p.release:
                    p.release_set()
                elif p.allocating:
                    p.wait_for_acquire(0.05)
            return all_acquired(all)
        w.wait("partitions", step)

    def all_acquired(all):
        return all[0].state == all[-1].state == PartitionState.ACQUIRED and sum(len(list(p)) for p in all) == 4

    settle(one, two)
    w.see("shares", [sorted(one), sorted(two)])
    two.finish()
    settle(one)
    w.see("alone", sorted(one))
    one.finish()


STEPS = [("k-party", party), ("k-barrier", barrier), ("k-double-barrier", double_barrier), ("k-queue", queue),
         ("k-locking-queue", locking_queue), ("k-election", election), ("k-counter", counter), ("k-partitions", partitions)]
