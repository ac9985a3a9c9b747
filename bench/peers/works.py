"""The works that peers are measured at. What they mean is in README.md.

A peer is a module with
    settings(run)         what it is run with, for the record
    prepare(run)          makes its tables or queues
    enqueue(run)          the command that enqueues the jobs of BENCH_JOBS
    work(run)             the commands of its worker processes
    unsettled(run)        how many of its tasks the servers still hold, as far as they tell
    remove(run)           removes what dropping the database does not
and LEAD, the seconds that enqueueing 10,000 delayed jobs may take. One that has a way to insert in bulk has also
    bulk(run)             the command that inserts run["count"] jobs and prints the seconds that they took
"""

import contextlib
import json
import os
import subprocess
import time

from marks import PLAIN, WARM
from processor import busy_ms
from servers import analyze, stop, until

START_SECONDS = 60  # for a worker to take its first task
STALL_SECONDS = 60  # without one more task started, the peer is taken to be stuck
POLL_SECONDS = 0.005


class Unfinished(Exception):
    """Not all tasks started in time."""

    def __init__(self, started, after_ms):
        super().__init__(f"{started} tasks started within {after_ms:.0f} ms")
        self.figures = {"started": started, "after_ms": after_ms}


def drain(peer, run, marks):
    """Tasks per second, from the start of the first to when the last is settled."""
    enqueue(peer, run, run["count"])
    until(lambda: peer.unsettled(run) == run["count"], 30, lambda: f"{peer.unsettled(run)} tasks are enqueued", 0.1)
    with workers(peer, run):
        until(lambda: marks.count() > 0, START_SECONDS, "no worker took a task")
        busy, before = busy_ms(), marks.count()
        all_started(marks, run["count"])
        until(lambda: peer.unsettled(run) == 0, STALL_SECONDS, "tasks started but were not settled")
        end = max(time.time_ns(), marks.last())
        processor_ms = (busy_ms() - busy) / max(1, run["count"] - before)
    # Whatever a worker held unsettled is back in its queue once the worker is gone.
    if left := peer.unsettled(run):
        raise RuntimeError(f"{left} tasks were not settled")
    seconds = (end - marks.first()) / 1e9
    value = run["count"] / seconds
    return {"value": value, "unit": "tasks/s", "samples": [value], "processor_ms": processor_ms}


def burst(peer, run, marks):
    """Milliseconds from the instant at which all jobs are due to the start of the last."""
    lead = float(os.environ.get("BURST_LEAD_SECONDS", peer.LEAD))
    with workers(peer, run):
        _warm(peer, run, marks)
        due_ms = int(time.time() * 1000 + lead * 1000)
        enqueue(peer, run, run["count"], due_ms=due_ms)
        if time.time() * 1000 > due_ms - 1000:
            raise RuntimeError("enqueueing was not done before the jobs were due; raise BURST_LEAD_SECONDS")
        sleep_until(due_ms)
        all_started(marks, run["count"], due_ms)
    value = marks.last() / 1e6 - due_ms
    return {"value": value, "unit": "ms", "first": marks.first() / 1e6 - due_ms, "samples": [value]}


def lag(peer, run, marks):
    """Milliseconds from when a job is due to the start of its task, one job a second, nothing else to do."""
    seconds = int(os.environ.get("LAG_SECONDS", 30))
    with workers(peer, run):
        _warm(peer, run, marks)
        begun = int(time.time()) * 1000 + 5000
        # Somewhere else in each second: what polls each second, or each half, is not always met at the same moment.
        dues = [begun + number * 1000 + number * 618 % 1000 for number in range(seconds)]
        enqueue(peer, run, dues_ms=dues)
        if time.time() * 1000 > begun - 500:
            raise RuntimeError("enqueueing was not done before the first job was due")
        sleep_until(dues[-1])
        all_started(marks, seconds, begun)
    lags = [marks.start_of(number) / 1e6 - due for number, due in enumerate(dues)]
    return {"value": quantile(lags, 0.5), "unit": "ms", "p99": quantile(lags, 0.99), "samples": lags}


def bulk(peer, run, marks):
    """Jobs per second that one program inserts, in transactions of a batch each, over one connection."""
    options = {"cwd": run["here"], "stdout": subprocess.PIPE, "stderr": run["log"], "text": True}
    ended = subprocess.run(peer.bulk(run), env=environment_of(run), check=True, **options)
    # What else it prints comes before.
    seconds = float(ended.stdout.split()[-1])
    if (found := peer.unsettled(run)) != run["count"]:
        raise RuntimeError(f"{found} of {run['count']} jobs were inserted")
    value = run["count"] / seconds
    return {"value": value, "unit": "/s", "samples": [value]}


def quantile(values, part):
    """The smallest value that at least this part of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -int(-part * len(ordered) // 1) - 1)]


def enqueue(peer, run, count=0, due_ms=None, dues_ms=(), number=PLAIN):
    """So many jobs now or at one instant, or one at each of `dues_ms`, numbered."""
    jobs = {"count": count, "due_ms": due_ms, "dues_ms": dues_ms, "number": number}
    environment = environment_of(run) | {"BENCH_JOBS": json.dumps(jobs)}
    options = {"cwd": run["here"], "stdout": run["log"], "stderr": run["log"]}
    subprocess.run(peer.enqueue(run), env=environment, check=True, **options)
    if "database" in run and number != WARM:
        analyze(run["database"])


@contextlib.contextmanager
def workers(peer, run):
    """The peer's worker processes, which are ended with their children."""
    started = []
    try:
        for number, command in enumerate(peer.work(run)):
            environment = environment_of(run) | {"BENCH_WORKER": str(number)}
            # A session of its own is a group to end, with what the peer forks.
            options = {"cwd": run["here"], "stdout": run["log"], "stderr": run["log"], "start_new_session": True}
            started.append(subprocess.Popen(command, env=environment, **options))
        yield started
    finally:
        for process in started:
            stop(process)


def environment_of(run):
    told = {name: value for name, value in run.items() if name != "log"}
    return os.environ | run["environment"] | {"BENCH_RUN": json.dumps(told)}


def _warm(peer, run, marks):
    """Returns once a first task has run: the worker is ready, its code is loaded."""
    enqueue(peer, run, 1, number=WARM)
    until(marks.warm, START_SECONDS, "no worker took a first task")


def sleep_until(due_ms):
    time.sleep(max(0, due_ms / 1000 - time.time()))


def all_started(marks, count, due_ms=None, limit=120):
    """Waits for all tasks to start; gives up when none does for a while, or `limit` seconds after they were due."""
    begun = time.time()
    seen, changed = 0, time.monotonic()
    while (started := marks.count()) < count:
        if started > seen:
            seen, changed = started, time.monotonic()
        late = time.monotonic() - changed > STALL_SECONDS
        if late or (due_ms is not None and time.time() - begun > limit):
            raise Unfinished(started, time.time() * 1000 - (due_ms or begun * 1000))
        time.sleep(POLL_SECONDS)


WORKS = {"drain": drain, "burst": burst, "lag": lag}
# Of the peers that have a way to insert in bulk.
WITH_BULK = {**WORKS, "enqueue": bulk}
