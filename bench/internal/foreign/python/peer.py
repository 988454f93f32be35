"""Contenders that use kazoo. It obeys the commands that package load describes."""
import json
import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient

WAIT_SECONDS = 60
STACK_BYTES = 256 << 10
ENOUGH = 5


class Gate:
    """Stops contenders, and its clock with them. It begins closed."""

    def __init__(self):
        self.event = threading.Event()
        self.mutex = threading.Lock()
        self.lost = 0  # nanoseconds that it was closed before it opened last
        self.since = time.perf_counter_ns()  # closed since, or None

    def now(self):
        """The time in nanoseconds that the gate has been open, and a constant."""
        with self.mutex:
            return (self.since or time.perf_counter_ns()) - self.lost

    def open(self):
        with self.mutex:
            self.lost += time.perf_counter_ns() - self.since
            self.since = None
        self.event.set()

    def close(self):
        with self.mutex:
            self.since = time.perf_counter_ns()
        self.event.clear()


class Witness:
    """Knows how much of one lock is held, whatever the lock believes."""

    def __init__(self, limit):
        self.limit = limit
        self.mutex = threading.Lock()
        self.inside = 0
        self.overlaps = 0
        self.released = None

    def enter(self):
        with self.mutex:
            self.inside += 1
            self.overlaps += self.inside > self.limit

    def leave(self):
        with self.mutex:
            self.inside -= 1


class Player:
    """One contender at work, and what it measured."""

    def __init__(self, engine, lock, witness):
        self.engine = engine
        self.lock = lock
        self.witness = witness
        self.forget()

    def forget(self):
        self.cycles, self.cycle, self.handover = 0, [], []

    def play(self):
        n = 0
        try:
            while True:
                self.once(n == 0)
                n += 1
        except Exception as e:
            self.engine.fail(repr(e))

    def once(self, first):
        gate, witness = self.engine.gate, self.witness
        asked = gate.now()
        if not self.lock.acquire():
            raise RuntimeError("acquire returned false")
        granted = gate.now()
        witness.enter()
        if self.engine.queued and witness.released is not None and self.engine.on:
            self.handover.append(granted - witness.released)
        gate.event.wait()
        witness.leave()
        witness.released = gate.now()
        self.lock.release()
        if self.engine.on:
            self.cycles += 1
            if not first:
                self.cycle.append(gate.now() - asked)


class Engine:
    def __init__(self, spec):
        self.gate = Gate()
        self.on = False
        self.errors = []
        self.clients = []
        self.players = []
        contenders, locks, sessions = int(spec["contenders"]), int(spec["locks"]), int(spec["sessions"])
        limit = int(spec["limit"]) if spec["kind"] == "semaphore" else 1
        self.queued = contenders > locks and limit == 1
        self.witnesses = [Witness(limit) for _ in range(locks)]
        servers = spec["addrs"].split(",")
        for i in range(sessions):
            client = KazooClient(hosts=servers[i % len(servers)], timeout=int(spec["timeout"]) / 1000)
            client.start(WAIT_SECONDS)
            self.clients.append(client)
        for i in range(contenders):
            lock = recipe(self.clients[i % sessions], spec, "%s/lock%d" % (spec["root"], i % locks))
            self.players.append(Player(self, lock, self.witnesses[i % locks]))
        for player in self.players:
            threading.Thread(target=player.play, daemon=True).start()

    def fail(self, what):
        if len(self.errors) < ENOUGH:
            self.errors.append(what)

    def begin(self):
        for player in self.players:
            player.forget()
        self.began = self.gate.now()
        self.on = True

    def end(self):
        self.on = False
        result = {
            "nanos": self.gate.now() - self.began,
            "cycles": sum(p.cycles for p in self.players),
            "overlaps": sum(w.overlaps for w in self.witnesses),
            "errors": self.errors,
            "cycle": [t for p in self.players for t in p.cycle],
            "handover": [t for p in self.players for t in p.handover],
            "witnessed": True,
        }
        return json.dumps(result, separators=(",", ":"))


def recipe(client, spec, path):
    kind = spec["kind"]
    if kind == "mutex":
        return client.Lock(path)
    if kind == "semaphore" and spec["permits"] == "1":
        return client.Semaphore(path, max_leases=int(spec["limit"]))
    raise ValueError("the peer has no such lock: %s" % kind)


def obey(words, engine):
    """Returns the engine and what to say after "ok"."""
    if words[0] == "setup":
        return Engine(dict(w.split("=", 1) for w in words[1:])), ""
    if words[0] == "quit":
        for client in engine.clients if engine else []:
            client.stop()
        return engine, ""
    if words[0] == "count":
        return engine, str(sum(p.cycles for p in engine.players))
    if words[0] == "end":
        return engine, engine.end()
    {"open": engine.gate.open, "close": engine.gate.close, "begin": engine.begin}[words[0]]()
    return engine, ""


def main():
    logging.basicConfig(level=logging.ERROR)
    threading.stack_size(STACK_BYTES)
    engine = None
    for line in sys.stdin:
        words = line.split()
        try:
            engine, said = obey(words, engine)
            answer = "ok " + said
        except Exception as e:
            answer = "error " + " ".join(repr(e).split())
        sys.stdout.write(answer.strip() + "\n")
        sys.stdout.flush()
        if words[0] == "quit":
            break
    os._exit(0)  # threads may still wait for a lock


main()
