"""Measures kazoo's lock: cycles.py SERVERS TIMEOUT_MS CONTENDERS PATH.

Opens a session for each contender, of server after server in turn, and says "ready".
For each line of its standard input, a number of milliseconds, all contenders acquire
and release the lock in a loop. Once each has had a turn it counts their cycles for
that long. Then it lets the line drain and prints

  cycles COUNT NANOSECONDS ALL   of the window, how long it was, and of the whole run
  violation TEXT                 when two held at once, or one failed"""

import logging
import sys
import threading
import time

from kazoo.client import KazooClient

servers, timeout, contenders, path = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
logging.disable(logging.CRITICAL)
holder, stop = None, False
done = [0] * contenders


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def contend(i, lock, first):
    global holder
    try:
        while True:
            lock.acquire()
            if holder is not None:
                say("violation two contenders hold kazoo's lock")
            holder = i
            holder = None
            lock.release()
            done[i] += 1
            if done[i] == 1:
                first.release()
            if stop:
                return
    except Exception as e:
        say("violation kazoo failed: %r" % e)


locks = []
for i in range(contenders):
    zk = KazooClient(hosts=servers[i % len(servers)], timeout=timeout / 1000.0)
    zk.start(timeout=30)
    locks.append(zk.Lock(path, str(i)))
say("ready")
for window in sys.stdin:
    stop, done[:] = False, [0] * contenders
    first = threading.Semaphore(0)
    threads = [threading.Thread(target=contend, args=(i, lock, first)) for i, lock in enumerate(locks)]
    for t in threads:
        t.start()
    for _ in threads:
        first.acquire()
    begun, before = time.monotonic_ns(), sum(done)
    time.sleep(int(window) / 1000)
    cycles, took = sum(done) - before, time.monotonic_ns() - begun
    stop = True
    for t in threads:
        t.join()
    say("cycles %d %d %d" % (cycles, took, sum(done)))
for lock in locks:
    lock.client.stop()
