"""What a peer's programs are told: the run they belong to, and the jobs to enqueue."""

import json
import os


def run():
    """The run: name, prefetch, processes, record and the servers' addresses; see run.py."""
    return json.loads(os.environ["BENCH_RUN"])


def jobs():
    """The jobs to enqueue: pairs of a number and a due time in ms since 1970, or None for now."""
    asked = json.loads(os.environ["BENCH_JOBS"])
    for index in range(asked["count"]):
        number = index if asked["every_ms"] else asked["number"]
        due = asked["due_ms"]
        yield number, None if due is None else due + index * asked["every_ms"]
