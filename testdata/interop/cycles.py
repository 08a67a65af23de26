"""Measures kazoo's recipes: cycles.py SERVERS TIMEOUT_MS SESSIONS PATH.

Opens the sessions, of server after server in turn, and says "ready". It carries out each
line of its standard input, a workload and a number, and prints

  cycles COUNT NANOSECONDS ALL   what counts, how long that took, and what was done in all
  violation TEXT                 when too many held at once, or one failed

In the first four, contenders acquire and release in a loop. Once each has had a turn, their
cycles count for MS milliseconds.

  cycle MS      a lock, with a contender for each session
  semaphore MS  a semaphore of three permits
  shared MS     a read-write lock, of which each tenth turn writes (Curator only)
  many MS       64 locks of the first session
  acquire MS    one lock without other contenders: the time of acquiring only
  barrier MS    all sessions enter and leave a double barrier; a cycle is one of one session
  put N         the first session puts N elements into a queue, and takes them: the puts
  take N        the same: the takes
  failover MS   each leader of an election closes its session; one candidate for each session
  hold N        N locks that all sessions hold in turn, until the next line"""

import logging
import sys
import threading
import time

from kazoo.client import KazooClient

PERMITS, MANY = 3, 64
servers, timeout, sessions, path = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
logging.disable(logging.CRITICAL)
guard = threading.Lock()


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def connect(i):
    zk = KazooClient(hosts=servers[i % len(servers)], timeout=timeout / 1000.0)
    zk.start(timeout=30)
    return zk


def start(functions):
    """Starts a thread for each function."""

    def run(function):
        try:
            function()
        except Exception as e:
            say("violation kazoo failed: %r" % e)

    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    return threads


def join(threads):
    for t in threads:
        t.join()


def cycle(locks, window, most):
    held, stop, done, first = 0, False, [0] * len(locks), threading.Semaphore(0)

    def contend(i):
        nonlocal held
        while True:
            locks[i].acquire()
            with guard:
                held += 1
                if held > most:
                    say("violation too many contenders hold at kazoo's path")
            if done[i] == 0:
                time.sleep(0.001)  # so that a holder too many would be counted
            with guard:
                held -= 1
            locks[i].release()
            done[i] += 1
            if done[i] == 1:
                first.release()
            if stop:
                return

    threads = start([lambda i=i: contend(i) for i in range(len(locks))])
    for _ in locks:
        first.acquire()
    begun, before = time.monotonic_ns(), sum(done)
    time.sleep(window / 1000)
    count, took = sum(done) - before, time.monotonic_ns() - begun
    stop = True
    join(threads)
    return count, took, sum(done)


def acquire(lock, window):
    count, took, begun = 0, 0, time.monotonic_ns()
    while count == 0 or time.monotonic_ns() - begun < window * 1000000:
        asked = time.monotonic_ns()
        lock.acquire()
        took += time.monotonic_ns() - asked
        lock.release()
        count += 1
    return count, took, count


def barrier(window):
    came, rounds, ending, begun = 0, 0, False, time.monotonic_ns()

    def again():  # when all have left
        nonlocal came, ending
        came, ending = 0, rounds > 0 and time.monotonic_ns() - begun >= window * 1000000

    gate = threading.Barrier(sessions, again)

    def take_part(zk, i):
        nonlocal came, rounds
        b = zk.DoubleBarrier(path + "/barrier", sessions, str(i))
        while True:
            gate.wait()
            if ending:
                return
            with guard:
                came += 1
            b.enter()
            if came < sessions or not b.participating:
                say("violation a member has passed kazoo's barrier with %d" % came)
            b.leave()
            if i == 0:
                rounds += 1

    join(start([lambda z=zk, i=i: take_part(z, i) for i, zk in enumerate(clients)]))
    return rounds * sessions, time.monotonic_ns() - begun, rounds * sessions


def put_and_take(measured, n):
    queue, begun = clients[0].Queue(path + "/queue"), time.monotonic_ns()
    for i in range(n):
        queue.put(b"element-%08d" % i)
    put, begun = time.monotonic_ns() - begun, time.monotonic_ns()
    for i in range(n):
        if queue.get() != b"element-%08d" % i:
            say("violation kazoo's queue is not in order")
    return n, put if measured == "put" else time.monotonic_ns() - begun, n


def failover():
    candidates = [connect(i) for i in range(sessions)]
    leaders, elected, first = [], [], threading.Event()

    def stand(zk, i):
        lock = zk.Election(path + "/election", str(i)).lock  # run would release it by a session that is closed
        lock.acquire()
        leaders.append(i)
        elected.append(time.monotonic_ns())
        if len(leaders) != 1:
            say("violation two lead kazoo's election")
        first.wait()
        leaders.remove(i)
        zk.stop()

    threads = start([lambda z=zk, i=i: stand(z, i) for i, zk in enumerate(candidates)])
    look = clients[0]
    while not look.exists(path + "/election") or len(look.get_children(path + "/election")) < sessions:
        time.sleep(0.001)
    begun = time.monotonic_ns()
    first.set()
    join(threads)
    return sessions - 1, max(elected) - begun, sessions


def hold(n):
    begun, waiting = time.monotonic_ns(), iter(range(n))

    def some():
        while True:
            with guard:
                i = next(waiting, None)
            if i is None:
                return
            clients[i % sessions].Lock("%s/hold-%d" % (path, i), str(i)).acquire()

    join(start([some] * MANY))
    return n, time.monotonic_ns() - begun, n


clients = [connect(i) for i in range(sessions)]
locks = [zk.Lock(path, str(i)) for i, zk in enumerate(clients)]
semaphores = [zk.Semaphore(path + "/semaphore", str(i), max_leases=PERMITS) for i, zk in enumerate(clients)]
singles = [clients[0].Lock("%s/many-%d" % (path, i), "many") for i in range(MANY)]
say("ready")
for line in sys.stdin:
    workload, number = line.split()
    number = int(number)
    if workload == "cycle":
        result = cycle(locks, number, 1)
    elif workload == "semaphore":
        result = cycle(semaphores, number, PERMITS)
    elif workload == "many":
        result = cycle(singles, number, MANY)
    elif workload == "acquire":
        result = acquire(clients[0].Lock(path + "/acquire", "acquire"), number)
    elif workload == "barrier":
        result = barrier(number)
    elif workload in ("put", "take"):
        result = put_and_take(workload, number)
    elif workload == "failover":
        result = failover()
    elif workload == "hold":
        result = hold(number)
    else:
        sys.exit("no workload " + workload)
    say("cycles %d %d %d" % result)
for zk in clients:
    zk.stop()
