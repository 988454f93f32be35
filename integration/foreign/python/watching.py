"""Watchers that re-arm themselves, the cache, and plain watches."""
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.watchers import PatientChildrenWatch


def data_watch(w):
    a = w.client()
    path = w.path("node")
    heard = []

    @a.DataWatch(path)
    def changed(data, stat, event):
        heard.append("%s %s %s" % (data, stat and stat.version, event and (event.type, event.path)))

    other = w.witness()
    w.wait("the first call", lambda: len(heard) == 1)
    w.watches("on the missing node", 1)
    for i, change in enumerate((lambda: other.create(path, b"1", makepath=True), lambda: other.set(path, b"2"),
                                lambda: other.set(path, b"3"), lambda: other.delete(path),
                                lambda: other.create(path, b"4"))):
        change()
        w.wait("change %d, have %s" % (i, heard), lambda i=i: len(heard) == i + 2)
        w.watches("after change %d" % i, 1)
    w.see("heard", heard)


def children_watch(w):
    a = w.client()
    path = w.path("folder")
    other = w.witness()
    other.create(path, b"", makepath=True)
    heard = []

    @a.ChildrenWatch(path, send_event=True)
    def changed(children, event):
        heard.append("%s %s" % (sorted(children), event and (event.type, event.path)))
        return len(heard) < 4

    for i, change in enumerate((lambda: other.create(path + "/a"), lambda: other.create(path + "/b"),
                                lambda: other.delete(path + "/a"))):
        change()
        w.wait("change %d, have %s" % (i, heard), lambda i=i: len(heard) == i + 2)
    other.create(path + "/c")
    a.sync(path)
    w.see("heard", heard)
    w.watches("none", 0)


def patient(w):
    """Told once the children have been left alone for a while, and once more when they change."""
    path = w.path("folder")
    other = w.witness()
    other.create(path + "/a", b"", makepath=True)
    other.create(path + "/b")
    children, changed = PatientChildrenWatch(w.client(), path, time_boundary=0.1).start().get(timeout=10)
    w.see("settled", sorted(children))
    w.see("changed", changed.ready())
    other.delete(path + "/a")
    w.wait("the change", changed.ready)


def tree_cache(w):
    a = w.client()
    path = w.path("root")
    other = w.witness()
    other.create(path, b"0", makepath=True)
    other.create(path + "/a", b"1")
    cache = TreeCache(a, path)
    heard = []
    cache.listen(lambda e: heard.append("%s %s" % (e.event_type, e.event_data and (e.event_data.path, e.event_data.data))))
    cache.start()
    w.wait("INITIALIZED, have %s" % heard, lambda: "%s None" % TreeEvent.INITIALIZED in heard)
    for change in (lambda: other.create(path + "/a/b", b"2"), lambda: other.set(path + "/a", b"3"),
                   lambda: other.delete(path + "/a/b"), lambda: other.create(path + "/c", b"4")):
        size = len(heard)
        change()
        w.wait("an event after %s" % heard, lambda: len(heard) > size)
    w.see("heard", heard)
    w.see("cached", [cache.get_data(path).data, cache.get_data(path + "/a").data, sorted(cache.get_children(path))])
    w.watches("data", 3)
    cache.close()


def plain(w):
    a = w.client()
    path = w.path("node")
    other = w.witness()
    heard = []

    def ear(name):
        return lambda e: heard.append((name, e.type, e.path))

    other.ensure_path(w.path())
    w.see("exists", a.exists(path, ear("missing")))
    other.create(path, b"1")
    a.get(path, ear("data"))
    a.exists(path, ear("exists"))
    a.get_children(path, ear("children"))
    other.set(path, b"2")
    other.create(path + "/x")
    other.set(path, b"3")
    other.delete(path + "/x")
    a.get(path, ear("end"))
    a.get_children(path, ear("end of children"))
    other.delete(path)
    w.wait("events, have %s" % heard, lambda: len(heard) == 6)
    w.see("heard", sorted(heard))
    w.see("on nothing", w.outcome(a.get, path, ear("none")))
    w.watches("none", 0)


STEPS = [("k-data-watch", data_watch), ("k-children-watch", children_watch), ("k-patient-watch", patient),
         ("k-tree-cache", tree_cache), ("k-watches", plain)]
