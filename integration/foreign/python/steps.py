"""Runs named steps with kazoo against one server; see the Java program for the lines it says.

Arguments: the address behind the proxy, the server's own address.
"""
import logging
import os
import sys
import threading
import traceback

import faults
import locks
import recipes
import rules
import watching
from world import World

LIMIT_SECONDS = 40


class Steps:
    def __init__(self):
        self.lock = threading.Lock()

    def say(self, line):
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def ask(self, line):
        with self.lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
            answer = sys.stdin.readline().strip()
        if not answer.startswith("done"):
            raise AssertionError("%s: %s" % (line, answer))
        return answer[len("done"):].strip()

    def run(self, name, body, proxied, direct):
        self.say("step " + name)
        world = World(self, name, proxied, direct)
        failure = []

        def work():
            try:
                body(world)
                world.ask("tree", "end")
                world.close()
            except BaseException as e:  # whatever it is, it is the step's end
                traceback.print_exc()
                at = traceback.extract_tb(e.__traceback__)
                here = [f for f in at if os.path.dirname(f.filename) == os.path.dirname(os.path.abspath(__file__))]
                where = "%s:%d" % (os.path.basename(here[-1].filename), here[-1].lineno) if here else "?"
                failure.append(" ".join(("%s: %s at %s" % (type(e).__name__, e, where)).split()))

        thread = threading.Thread(target=work, name="step " + name, daemon=True)
        thread.start()
        thread.join(LIMIT_SECONDS)
        if thread.is_alive():
            stack = traceback.format_stack(sys._current_frames()[thread.ident])
            failure.append("still at " + " ".join("".join(stack[-4:]).split()))
        if failure:
            world.close()
            self.say("fail %s %s" % (name, failure[0]))
        else:
            self.say("ok " + name)


def main():
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    proxied, direct = sys.argv[1:3]
    steps = Steps()
    for module in (locks, recipes, watching, rules, faults):
        for name, body in module.STEPS:
            steps.run(name, body, proxied, direct)
    os._exit(0)  # a step that hung has threads left


if __name__ == "__main__":
    main()
