# SPDX-License-Identifier: MIT
"""The page allocator that the pool is after, as its documentation tells it, in Python: a
FIFO of ids, and one lock around look-and-take and around free.

    documented_fifo.py KIND NUM_PAGES

KIND is what holds the ids: `queue`, a queue.Queue, as the documentation has it, or
`deque`, a collections.deque, the fastest that Python has.  Obeys one command a line of
its input and answers each with one line:

    take N                   the ids, or nothing
    give ID...               ok
    scramble BATCH           ok; the whole FIFO in random order, given in such batches
    pairs N TURNS            ns of a take and a give of N: the median of 8 rounds
    phases N PAGES           ns per page of the takes and of the gives of so many pages
    taker_giver MOST SECONDS             one thread takes, one gives, 1..MOST at a time
    mixed THREADS MOST HELD SECONDS      all take and give, each up to HELD pages

The last two answer: takes and gives a second, then p50, p99, p99.9, p99.99 and the
longest of the takes in ns.
"""
import collections
import queue
import random
import sys
import threading
from time import perf_counter_ns, sleep


class QueueFifo:
    def __init__(self, num_pages):
        self.lock = threading.Lock()
        self.pages = queue.Queue()
        self.free(range(num_pages))

    def try_allocate(self, n):
        with self.lock:
            if self.pages.qsize() < n:
                return None
            return [self.pages.get_nowait() for _ in range(n)]

    def free(self, pages):
        with self.lock:
            for page in pages:
                self.pages.put_nowait(page)

    def num_free(self):
        return self.pages.qsize()


class DequeFifo:
    def __init__(self, num_pages):
        self.lock = threading.Lock()
        self.pages = collections.deque(range(num_pages))

    def try_allocate(self, n):
        with self.lock:
            if len(self.pages) < n:
                return None
            popleft = self.pages.popleft
            return [popleft() for _ in range(n)]

    def free(self, pages):
        with self.lock:
            self.pages.extend(pages)

    def num_free(self):
        return len(self.pages)


def scramble(fifo, batch):
    pages = fifo.try_allocate(fifo.num_free())
    random.shuffle(pages)
    for at in range(0, len(pages), batch):
        fifo.free(pages[at:at + batch])


def pairs(fifo, n, turns):
    ns = []
    for _ in range(8):
        start = perf_counter_ns()
        for _ in range(turns):
            fifo.free(fifo.try_allocate(n))
        ns.append((perf_counter_ns() - start) / turns)
    return [sorted(ns)[4]]


def phases(fifo, n, num_pages):
    start = perf_counter_ns()
    batches = [fifo.try_allocate(n) for _ in range(num_pages // n)]
    take_ns = perf_counter_ns() - start
    pages = [page for batch in batches for page in batch]
    random.shuffle(pages)
    batches = [pages[at:at + n] for at in range(0, len(pages), n)]
    start = perf_counter_ns()
    for batch in batches:
        fifo.free(batch)
    give_ns = perf_counter_ns() - start
    return [take_ns / len(pages), give_ns / len(pages)]


class Tally:
    """What one thread did: its operations, and how long its takes were."""

    def __init__(self, most):
        self.sizes = [random.randint(1, most) for _ in range(1024)]
        self.ops = 0
        self.ns = []

    def next_size(self):
        return self.sizes[self.ops & 1023]

    def timed_take(self, fifo, n):
        start = perf_counter_ns()
        pages = fifo.try_allocate(n)
        if pages is not None:
            self.ns.append(perf_counter_ns() - start)
            self.ops += 1
        return pages


def run(workers, tallies, seconds, stop):
    threads = [threading.Thread(target=worker) for worker in workers]
    start = perf_counter_ns()
    for thread in threads:
        thread.start()
    sleep(seconds)
    stop.set()
    elapsed = (perf_counter_ns() - start) / 1e9
    for thread in threads:
        thread.join()
    ns = sorted(ns for tally in tallies for ns in tally.ns) or [0]
    marks = [ns[int(q * (len(ns) - 1))] for q in (0.5, 0.99, 0.999, 0.9999, 1)]
    return [sum(tally.ops for tally in tallies) / elapsed] + marks


def taker_giver(fifo, most, seconds):
    handed = collections.deque()
    taker, giver = Tally(most), Tally(most)
    stop = threading.Event()

    def take():
        while not stop.is_set():
            pages = taker.timed_take(fifo, taker.next_size())
            if pages is not None:
                handed.extend(pages)

    def give():
        while not stop.is_set():
            n = giver.next_size()
            if len(handed) >= n:
                fifo.free([handed.popleft() for _ in range(n)])
                giver.ops += 1
            else:
                sleep(0)

    answer = run([take, give], [taker, giver], seconds, stop)
    fifo.free(handed)
    return answer


def mixed(fifo, threads, most, held_most, seconds):
    tallies = [Tally(most) for _ in range(threads)]
    stop = threading.Event()

    def worker(tally):
        held = []
        while not stop.is_set():
            n = tally.next_size()
            if random.random() < 0.5 and len(held) + n <= held_most:
                held += tally.timed_take(fifo, n) or []
            elif held:
                fifo.free(held[-n:])
                del held[-n:]
                tally.ops += 1
        fifo.free(held)

    workers = [lambda tally=tally: worker(tally) for tally in tallies]
    return run(workers, tallies, seconds, stop)


def obey(fifo, words):
    if words[0] == "take":
        return fifo.try_allocate(int(words[1])) or []
    if words[0] == "give":
        fifo.free([int(word) for word in words[1:]])
    elif words[0] == "scramble":
        scramble(fifo, int(words[1]))
    elif words[0] == "pairs":
        return pairs(fifo, int(words[1]), int(words[2]))
    elif words[0] == "phases":
        return phases(fifo, int(words[1]), int(words[2]))
    elif words[0] == "taker_giver":
        return taker_giver(fifo, int(words[1]), float(words[2]))
    elif words[0] == "mixed":
        return mixed(fifo, *(int(word) for word in words[1:4]), float(words[4]))
    else:
        sys.exit("documented_fifo.py: no such command: " + words[0])
    return ["ok"]


def main():
    kind = {"queue": QueueFifo, "deque": DequeFifo}[sys.argv[1]]
    fifo = kind(int(sys.argv[2]))
    print("ok", flush=True)
    for line in sys.stdin:
        print(*obey(fifo, line.split()), flush=True)


main()
