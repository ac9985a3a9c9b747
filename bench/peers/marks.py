"""Where tasks note that they started: a small file that all processes of a run have in memory.

Each thread of a worker has a slot of its own (tasks, first start, last start), so that a task costs its peer one
clock reading and one write to memory, without a lock. Times are nanoseconds of the machine's real-time clock.
marks.mjs writes the same file from Node.
"""

import fcntl
import functools
import mmap
import os
import struct
import threading
import time

SLOTS = 64
STARTS = 4096
WARM = -2  # the number of the task that only shows that the worker is ready
PLAIN = -1  # the number of a task whose own start is of no interest

HEADER = struct.Struct("<qq")  # slots given out, start of the warming task
SLOT = struct.Struct("<qqq")
START = struct.Struct("<q")
SIZE = HEADER.size + SLOTS * SLOT.size + STARTS * START.size


class Marks:
    def __init__(self, path):
        self.file = open(path, "r+b")
        self.memory = mmap.mmap(self.file.fileno(), SIZE)
        self.own = threading.local()

    @staticmethod
    def create(path):
        with open(path, "wb") as file:
            file.write(bytes(SIZE))
        return Marks(path)

    def started(self, number):
        """Called first thing by every task."""
        now = time.time_ns()
        if number == WARM:
            START.pack_into(self.memory, START.size, now)
            return
        own = self.own
        if not hasattr(own, "offset"):
            own.offset, own.count, own.first = self._claim(), 0, now
        own.count += 1
        SLOT.pack_into(self.memory, own.offset, own.count, own.first, now)
        if number >= 0:
            START.pack_into(self.memory, _start(number), now)

    def _claim(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)
        given, warm = HEADER.unpack_from(self.memory)
        HEADER.pack_into(self.memory, 0, given + 1, warm)
        fcntl.flock(self.file, fcntl.LOCK_UN)
        # Node's workers count from the other end.
        assert given < SLOTS // 2, "more threads than slots"
        return HEADER.size + given * SLOT.size

    def warm(self):
        return HEADER.unpack_from(self.memory)[1] != 0

    def _slots(self):
        for number in range(SLOTS):
            slot = SLOT.unpack_from(self.memory, HEADER.size + number * SLOT.size)
            if slot[0]:
                yield slot

    def count(self):
        return sum(count for count, _, _ in self._slots())

    def first(self):
        return min(first for _, first, _ in self._slots())

    def last(self):
        return max(last for _, _, last in self._slots())

    def start_of(self, number):
        """The start of task `number`, or 0 if it has not started."""
        return START.unpack_from(self.memory, _start(number))[0]


def _start(number):
    return HEADER.size + SLOTS * SLOT.size + number * START.size


@functools.cache
def _of(process):
    return Marks(os.environ["BENCH_MARKS"])


def of_environment():
    """The marks of the run that started this process.

    A forked process opens its own: locks of a file that both inherited exclude neither.
    """
    return _of(os.getpid())
