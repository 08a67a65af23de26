"""Contends with kazoo: peer.py SERVERS TIMEOUT_MS RECIPE PATH WITNESS.

Takes turns at PATH until its standard input ends. Each turn is seen by a witness
outside ZooKeeper, the directory WITNESS. Prints "turn NUMBER" for each, "read" for a
reader's, "held" for one that others may have beside it, "put ID" and "took ID" for
elements of a queue, "enters" and "passed NUMBER" at a double barrier, "violation TEXT" when two were in that should exclude each other, and
"timeout" when kazoo has waited for too long (kazoo#649)."""

import glob
import logging
import os
import random
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import ReadLock, WriteLock

servers, timeout, recipe, path, witness = sys.argv[1:6]
logging.disable(logging.CRITICAL)
me = str(os.getpid())


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def exclusive():
    file = os.path.join(witness, "writer")
    try:
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY), "w") as f:
            f.write(me)
    except FileExistsError:
        say("violation kazoo holds beside a holder")
        return
    readers = glob.glob(os.path.join(witness, "reader-*"))
    if readers:
        say("violation kazoo writes beside " + " ".join(readers))
    counter = os.path.join(witness, "counter")
    with open(counter) as f:
        n = int(f.read() or 0)
    time.sleep(0.002)
    with open(counter, "w") as f:
        f.write(str(n + 1))
    say("turn %d" % (n + 1))
    os.remove(file)


def shared():
    file = os.path.join(witness, "reader-" + me)
    open(file, "w").close()
    for _ in range(2):
        if os.path.exists(os.path.join(witness, "writer")):
            say("violation kazoo reads beside a writer")
        time.sleep(0.001)
    say("read")
    os.remove(file)


def permit():
    file = os.path.join(witness, "slot-" + me)
    open(file, "w").close()
    for _ in range(2):
        slots = glob.glob(os.path.join(witness, "slot-*"))
        if len(slots) > 2:
            say("violation kazoo has a permit beside " + " ".join(slots))
        time.sleep(0.001)
    say("held")
    os.remove(file)


def watch_stdin(zk):
    sys.stdin.read()
    try:
        zk.stop()
    finally:
        os._exit(0)


zk = KazooClient(hosts=servers, timeout=int(timeout) / 1000.0)
zk.start(timeout=30)
threading.Thread(target=watch_stdin, args=(zk,), daemon=True).start()
say("ready")
counter, queue, puts = zk.Counter(path), zk.Queue(path), 0
while True:
    if recipe == "lock":
        with zk.Lock(path, me):
            exclusive()
    elif recipe == "election":
        zk.Election(path, me).run(exclusive)
    elif recipe == "rw":
        reading = random.random() < 0.5
        lock = (ReadLock if reading else WriteLock)(zk, path, me)
        try:
            lock.acquire(timeout=2)
        except LockTimeout:
            say("timeout")
            continue
        shared() if reading else exclusive()
        lock.release()
    elif recipe == "semaphore":
        with zk.Semaphore(path, me, max_leases=2):
            permit()
    elif recipe == "counter":
        counter += 1
        say("turn %d" % counter.post_value)
        time.sleep(0.005)
    elif recipe == "group":
        party = zk.Party(path, "kazoo " + me)
        party.join()
        members = list(party)
        if "kazoo " + me not in members:
            say("violation kazoo does not see itself")
        if any(m.startswith("ours ") for m in members):
            say("held")
        party.leave()
    elif recipe == "queue":
        puts += 1
        queue.put(("%s-%d" % (me, puts)).encode())
        say("put %s-%d" % (me, puts))
        element = queue.get()
        if element is not None:
            say("took " + element.decode())
    elif recipe == "barrier":
        open(os.path.join(witness, "member-" + me), "w").close()
        say("enters")
        zk.DoubleBarrier(path, 2, me).enter()
        say("passed %d" % len(glob.glob(os.path.join(witness, "member-*"))))
        threading.Event().wait()
    else:
        sys.exit("no recipe " + recipe)
