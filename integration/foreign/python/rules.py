"""Requests one by one: results, errors, permissions, transactions, four-letter words."""
import re

from kazoo.security import ACL, CREATOR_ALL_ACL, Id, OPEN_ACL_UNSAFE, make_acl, make_digest_acl


def requests(w):
    a = w.client()
    p = w.path
    w.see("create with parents", a.create(p("a/b/c"), b"1", makepath=True))
    w.see("with stat", a.create(p("s"), b"22", include_data=True)[1].data_length)
    w.see("sequential", [a.create(p("q-"), sequence=True), a.create(p("q-"), sequence=True, ephemeral=True)])
    w.see("create again", w.outcome(a.create, p("s")))
    w.see("below nothing", w.outcome(a.create, p("none/x")))
    w.see("below ephemeral", w.outcome(a.create, p("q-0000000003/x")))
    w.see("exists", [bool(a.exists(p("s"))), a.exists(p("none"))])
    w.see("get", a.get(p("a/b/c"))[0])
    w.see("children", sorted(a.get_children(p())))
    children, stat = a.get_children(p(), include_data=True)
    w.see("children and stat", [sorted(children), stat.numChildren, stat.cversion, stat.version])
    w.see("set", a.set(p("s"), b"333").version)
    w.see("wrong version", w.outcome(a.set, p("s"), b"", 7))
    w.see("delete full", w.outcome(a.delete, p("a")))
    w.see("delete a wrong version", w.outcome(a.delete, p("s"), 0))
    w.see("delete", a.delete(p("s"), 1))
    w.see("delete nothing", w.outcome(a.delete, p("s")))
    w.see("ensure", a.ensure_path(p("x/y/z")))
    w.see("ensure again", a.ensure_path(p("x/y/z")))
    w.see("sync", a.sync(p()))
    w.tree("made")
    w.see("delete all", a.delete(p("a"), recursive=True))
    w.see("null data", a.create(p("null"), b""))
    w.see("large", len(a.get(a.create(p("large"), b"x" * 1000000))[0]))
    w.see("reconfig", w.outcome(lambda: len(a.get("/zookeeper/config")[0]) == 0))
    results = [a.create_async(p("async-%d" % i)) for i in range(200)] + [a.exists_async(p("async-%d" % i)) for i in range(200)]
    w.see("many at once", all(r.get(timeout=10) for r in results))


def chroot(w):
    w.witness().ensure_path(w.path("inner"))
    a = w.client(hosts=w.proxied + w.path("inner"))
    w.see("created", a.create("/a/b", b"1", makepath=True))
    w.see("root", a.get_children("/"))
    heard = []
    a.get("/a/b", lambda e: heard.append((e.type, e.path)))
    w.witness().set(w.path("inner/a/b"), b"2")
    w.wait("the event", lambda: heard)
    w.see("heard", heard)


def transaction(w):
    a = w.client()
    a.ensure_path(w.path())

    def results(t):
        return [type(r).__name__ if isinstance(r, Exception) else (r if isinstance(r, (str, bool)) else r.version) for r in t.commit()]

    t = a.transaction()
    t.create(w.path("a"), b"1")
    t.create(w.path("s-"), b"2", sequence=True, ephemeral=True)
    t.set_data(w.path("a"), b"3")
    t.check(w.path("a"), 1)
    t.create(w.path("b"))
    t.delete(w.path("b"))
    w.see("good", results(t))
    w.tree("good")
    for name, part in (("exists", lambda t: t.create(w.path("a"))), ("missing", lambda t: t.delete(w.path("none"))),
                       ("version", lambda t: t.set_data(w.path("a"), b"", 9)), ("check", lambda t: t.check(w.path("a"), 0))):
        t = a.transaction()
        t.create(w.path("first"))
        part(t)
        t.create(w.path("last"))
        w.see(name, results(t))
    w.see("empty", results(a.transaction()))
    w.tree("nothing changed")


def acl(w):
    mine = w.client(auth_data=[("digest", "me:secret")])
    other = w.client()
    mine.create(w.path(), b"x")
    path = w.path("mine")
    mine.create(path, b"secret", acl=CREATOR_ALL_ACL)
    w.see("ACL", mine.get_acls(path)[0])
    for name, call in (("get", lambda: other.get(path)), ("children", lambda: other.get_children(path)),
                       ("set", lambda: other.set(path, b"")), ("create", lambda: other.create(path + "/x")),
                       ("get ACL", lambda: other.get_acls(path)), ("set ACL", lambda: other.set_acls(path, OPEN_ACL_UNSAFE)),
                       ("exists", lambda: bool(other.exists(path)))):
        w.see("other: " + name, w.outcome(call))
    w.see("set ACL", mine.set_acls(path, [make_acl("world", "anyone", read=True), make_digest_acl("you", "pw", all=True)]).aversion)
    w.see("other sees", w.outcome(lambda: other.get_acls(path)[0]))
    w.see("mine no more", w.outcome(mine.set, path, b"x"))
    other.add_auth("digest", "you:pw")
    w.see("with the password", other.set(path, b"y").version)
    w.see("wrong ACL version", w.outcome(other.set_acls, path, OPEN_ACL_UNSAFE, 9))
    w.see("unknown scheme", w.outcome(other.set_acls, path, [ACL(31, Id("none", "x"))]))
    w.see("no ACL", w.outcome(other.create, w.path("n"), b"", []))
    third = w.client()
    w.see("creator without an id", w.outcome(third.create, w.path("c"), b"", CREATOR_ALL_ACL))
    w.see("unknown auth", w.outcome(third.add_auth, "none", "x:y"))


def words(w):
    a = w.client(hosts=w.direct)
    a.create(w.path("e"), b"x", ephemeral=True, makepath=True)
    a.get(w.path(), lambda e: None)
    a.exists(w.path("none"), lambda e: None)
    a.get_children(w.path(), lambda e: None)
    w.see("version", a.server_version()[:2])
    for word in (b"ruok", b"isro", b"nope"):
        w.see(word.decode(), a.command(word))
    for word in (b"srvr", b"wchs"):
        w.see(word.decode(), shape(a.command(word)))
    for word in (b"wchp", b"wchc"):  # real servers list paths in the order of a hash
        w.see(word.decode(), sorted(shape(line) for line in a.command(word).splitlines() if line))
    # Connections too, and among them those of the words before.
    w.see("stat", sorted(set(shape(line) for line in a.command(b"stat").splitlines() if line)))
    a.exists(w.path())
    own = "sid=0x%x," % a.client_id[0]
    lines = [line for line in a.command(b"cons").splitlines() if line]
    w.see("cons", [shape(line) for line in lines if own in line])
    # What another connection has asked last may have become a ping by now.
    w.see("cons of others", sorted(set(shape(re.sub(r"lop=\w+", "lop=#", line)) for line in lines if own not in line)))
    dump = a.command(b"dump")
    w.see("dump", shape(dump[dump.index("ephemeral nodes dump"):dump.index("Connections Sets")]))
    numbers = dict(line.split("\t", 1) for line in a.command(b"mntr").splitlines() if "\t" in line)
    for key in ("server_state", "ephemerals_count", "watch_count", "global_sessions", "outstanding_requests", "approximate_data_size"):
        w.see(key, numbers["zk_" + key])
    settings = dict(line.split("=") for line in a.command(b"conf").splitlines())
    for key in ("tickTime", "maxClientCnxns", "minSessionTimeout", "maxSessionTimeout", "serverId"):
        w.see(key, settings[key])
    environment = dict(line.split("=", 1) for line in a.command(b"envi").splitlines()[1:])
    w.see("environment", "zookeeper.version" in environment and "host.name" in environment)


def shape(answer):
    """An answer without what differs between two servers that are alike."""
    answer = re.sub(r"Zookeeper version: .*", "Zookeeper version: #", answer)
    answer = re.sub(r"/[0-9.]+:[0-9]+", "/#", answer)
    answer = re.sub(r"(0x[0-9a-f]+|[0-9.]*[0-9])", "#", answer)
    return answer.replace("\n", "|").replace("\t", ">")


STEPS = [("k-requests", requests), ("k-chroot", chroot), ("k-transaction", transaction), ("k-words", words),
         ("k-acl", acl)]  # leaves a session behind, which the words would count
