"""Celery's beat: the burst only, as entries of a schedule that are all due at the same minute."""

import os
import time

from celery.schedules import crontab

import jobs
import marks
import peer_celery
import works
from peer_celery import enqueue, prepare, remove, unsettled, version  # noqa: F401 - what a peer is asked for

MINUTE_MS = 60_000


def settings(run):
    return {**peer_celery.settings(run), "scheduler": "celery.beat:PersistentScheduler", "schedule": "crontab()"}


def work(run):
    beat = [run["python"], "-m", "celery", "-A", "peer_celery_beat", "beat", "--loglevel", "WARNING", "--pidfile", ""]
    return [*peer_celery.work(run), [*beat, "--schedule", os.path.join(run["scratch"], "schedule")]]


def burst(peer, run, noted):
    """Milliseconds from a minute's begin to the start of the last; until the next minute's are due as well."""
    # Beat gets a whole minute to read its entries.
    begun = (int(time.time() * 1000) // MINUTE_MS + 1) * MINUTE_MS
    works.sleep_until(begun + 1000)
    due_ms = begun + MINUTE_MS
    with works.workers(peer, run):
        works.sleep_until(due_ms)
        works.all_started(noted, run["count"], due_ms, 60)
    value = noted.last() / 1e6 - due_ms
    return {"value": value, "unit": "ms", "first": noted.first() / 1e6 - due_ms, "samples": [value]}


WORKS = {"burst": burst}

if "BENCH_RUN" in os.environ:
    app = peer_celery.app
    app.conf.beat_schedule = {
        f"entry-{number}": {"task": "bench", "schedule": crontab(), "args": (marks.PLAIN,)}
        for number in range(jobs.run()["count"] or 0)
    }
