"""Contends with kazoo: peer.py SERVERS TIMEOUT_MS RECIPE PATH WITNESS.

Takes turns at PATH until its standard input ends. Each turn is seen by a witness
outside ZooKeeper, the directory WITNESS. Prints

  turn NUMBER CZXID     for each, with the czxid of its znode
  read NUMBER CZXID     for a reader's, after that turn of a writer
  held CZXID SESSION    for a permit; "held" alone for what has no order
  put ID, took ID       for elements of a queue
  passed COUNT          at a double barrier: how many have come to it
  left COUNT            how many were still inside
  listed                when ours are among those that kazoo lists
  timeout               when kazoo has waited for too long (kazoo#649)
  lost                  at its end, when the session was lost
  violation TEXT        when two were in that should exclude each other"""

import glob
import logging
import os
import random
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, LockTimeout, SessionExpiredError
from kazoo.recipe.lock import ReadLock, WriteLock

servers, timeout, recipe, path, witness = sys.argv[1:6]
logging.disable(logging.CRITICAL)
me = str(os.getpid())


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def turns():
    with open(os.path.join(witness, "counter")) as f:
        return int(f.read() or 0)


def listed(contenders):
    if any(c.startswith("ours ") for c in contenders):
        say("listed")


def czxid(lock):
    return zk.exists(path + "/" + lock.node).czxid


def exclusive(lock):
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
    n = turns()
    time.sleep(0.002)
    with open(os.path.join(witness, "counter"), "w") as f:
        f.write(str(n + 1))
    say("turn %d %d" % (n + 1, czxid(lock)))
    os.remove(file)


def shared(lock):
    file = os.path.join(witness, "reader-" + me)
    open(file, "w").close()
    for _ in range(2):
        if os.path.exists(os.path.join(witness, "writer")):
            say("violation kazoo reads beside a writer")
        time.sleep(0.001)
    say("read %d %d" % (turns(), czxid(lock)))
    os.remove(file)


def permit(semaphore):
    file = os.path.join(witness, "slot-" + me)
    open(file, "w").close()
    for _ in range(2):
        slots = glob.glob(os.path.join(witness, "slot-*"))
        if len(slots) > 2:
            say("violation kazoo has a permit beside " + " ".join(slots))
        time.sleep(0.001)
    lease = zk.exists(semaphore.create_path)
    say("held %d %d" % (lease.czxid, lease.owner_session_id))
    os.remove(file)


def mark(name):
    file = os.path.join(witness, name + "-" + me)
    open(file, "w").close()
    return file


def marks(name):
    return len(glob.glob(os.path.join(witness, name + "-*")))


# Four members enter together and leave together, again and again. None leaves before all
# have come: one that had not counted yet would wait for ever. A member that rests before
# it enters may be killed by whoever takes its mark away.
def take_part():
    global rounds
    rests = mark("rests")
    time.sleep(0.005)
    try:
        os.remove(rests)
    except FileNotFoundError:
        threading.Event().wait()
    rounds += 1
    this = str(rounds)
    member = mark("member-" + this)
    barrier = zk.DoubleBarrier(path, 4, me)
    barrier.enter()
    if not barrier.participating:
        say("violation kazoo has not entered")
    say("passed %d" % marks("member-" + this))
    inside, came, last = mark("inside-" + this), mark("came-" + this), mark("last")
    with open(last, "w") as f:
        f.write(this)
    os.rename(last, os.path.join(witness, "round"))
    while marks("came-" + this) < 4:
        time.sleep(0.001)
    os.remove(inside)
    barrier.leave()
    say("left %d" % marks("inside-" + this))
    os.remove(came)
    os.remove(member)


def watch_stdin(zk):
    sys.stdin.read()
    try:
        zk.stop()
    finally:
        os._exit(0)


# Queue.get tries again when another was faster, and by default waits twice as long each
# time, up to an hour. Beside takers that are faster it would have no turn any more.
impatient = {"max_tries": -1, "delay": 0.01, "backoff": 1}
zk = KazooClient(hosts=servers, timeout=int(timeout) / 1000.0, command_retry=impatient)
zk.start(timeout=30)
threading.Thread(target=watch_stdin, args=(zk,), daemon=True).start()
say("ready")
counter, queue, puts = zk.Counter(path), zk.Queue(path), 0
try:
    with open(os.path.join(witness, "round")) as f:
        rounds = int(f.read())
except FileNotFoundError:
    rounds = 0


def turn():
    global counter, puts
    if recipe == "lock":
        lock = zk.Lock(path, me)
        with lock:
            exclusive(lock)
            listed(lock.contenders())
    elif recipe == "election":
        election = zk.Election(path, me)

        def lead():
            exclusive(election.lock)
            listed(election.contenders())

        election.run(lead)
    elif recipe == "rw":
        reading = random.random() < 0.5
        lock = (ReadLock if reading else WriteLock)(zk, path, me)
        try:
            lock.acquire(timeout=2)
        except LockTimeout:
            say("timeout")
            return
        shared(lock) if reading else exclusive(lock)
        lock.release()
    elif recipe == "semaphore":
        semaphore = zk.Semaphore(path, me, max_leases=2)
        with semaphore:
            permit(semaphore)
            listed(semaphore.lease_holders())
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
    elif recipe == "rounds":
        take_part()
    else:
        sys.exit("no recipe " + recipe)


try:
    while True:
        turn()
except (ConnectionClosedError, ConnectionLoss, SessionExpiredError):  # as on a machine that is busy for too long
    say("lost")
except Exception as e:
    say("violation kazoo failed: %r" % e)
os._exit(1)
