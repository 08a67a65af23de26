"""Measures kazoo's queue: drain.py SERVERS TIMEOUT_MS SESSIONS PATH.

Opens the sessions and says "ready". It carries out each line of its standard input, and
prints the line's first word, the number of elements, and two durations in nanoseconds: of
the whole line, and until the first element was taken.

  put N           puts N elements, one after the other
  len             counts the elements
  take N SECONDS  takes N elements, with a consumer for each session, for SECONDS at most"""

import logging
import sys
import threading
import time

from kazoo.client import KazooClient

servers, timeout, sessions, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
logging.disable(logging.CRITICAL)

# Queue.get tries again when another was faster, and by default waits twice as long each time.
impatient = {"max_tries": -1, "delay": 0.01, "backoff": 1}
queues = []
for _ in range(sessions):
    zk = KazooClient(hosts=servers, timeout=timeout / 1000.0, command_retry=impatient)
    zk.start(timeout=30)
    queues.append(zk.Queue(path))


def say(*words):
    print(*words, flush=True)


def take(n, seconds):
    lock, taken, failed = threading.Lock(), [], []
    began = time.monotonic()

    def consume(queue):
        try:
            while len(taken) < n and time.monotonic() - began < seconds:
                if queue.get() is not None:
                    with lock:
                        taken.append(time.monotonic_ns())
        except Exception as e:
            failed.append("%s: %s" % (type(e).__name__, e))

    consumers = [threading.Thread(target=consume, args=(q,)) for q in queues]
    for c in consumers:
        c.start()
    for c in consumers:
        c.join()
    if failed:
        sys.exit("kazoo failed: " + failed[0])
    return len(taken), min(taken, default=0)


say("ready")
for line in sys.stdin:
    what, *numbers = line.split()
    numbers = list(map(int, numbers))
    began, first = time.monotonic_ns(), 0
    if what == "put":
        count = numbers[0]
        for i in range(count):
            queues[0].put(b"element-%08d" % i)
    elif what == "len":
        count = len(queues[0])
    else:
        count, first = take(*numbers)
    say(what, count, time.monotonic_ns() - began, max(first - began, 0))
for q in queues:
    q.client.stop()
