"""What a peer's programs are told: the run they belong to, and the jobs to enqueue."""

import json
import os


def run():
    """The run: name, prefetch, processes, record and the servers' addresses; see run.py."""
    return json.loads(os.environ["BENCH_RUN"])


def jobs():
    """The jobs to enqueue: pairs of a number and a due time in ms since 1970, or None for now."""
    asked = json.loads(os.environ["BENCH_JOBS"])
    # Jobs with due times of their own are numbered; all others are alike.
    yield from enumerate(asked["dues_ms"])
    for _ in range(asked["count"]):
        yield asked["number"], asked["due_ms"]
