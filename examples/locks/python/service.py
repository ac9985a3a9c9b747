"""Cleans tokens up every second, on one of the service's instances."""

import os
import signal
import threading
from datetime import datetime, timedelta, timezone

import psycopg

KEY = 5101
URL = os.environ["DATABASE_URL"]
SERVICE = os.environ.get("SERVICE", "python")

stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())


def clean_up(tick: datetime) -> None:
    with psycopg.connect(URL) as connection:
        connection.execute("INSERT INTO cleanups (tick, service) VALUES (%s, %s)", (tick, SERVICE))


def run(locks: psycopg.Connection, tick: datetime) -> None:
    [is_ours] = locks.execute("SELECT sexton.guard_try(%s, %s)", (KEY, tick)).fetchone()
    if not is_ours:
        return
    try:
        clean_up(tick)
    except Exception as error:
        locks.execute("SELECT sexton.guard_done(%s, %s, 'failed', %s)", (KEY, tick, str(error)))
        raise
    locks.execute("SELECT sexton.guard_done(%s, %s)", (KEY, tick))


# The locks have a connection to themselves; if it is lost, the exception ends the service, and the lock was lost with it.
with psycopg.connect(URL, autocommit=True, application_name=SERVICE) as locks:
    print(f"{SERVICE} runs", flush=True)
    second = timedelta(seconds=1)
    tick = datetime.now(timezone.utc).replace(microsecond=0) + second
    while not stopping.wait(max(0, (tick - datetime.now(timezone.utc)).total_seconds())):
        run(locks, tick)
        # Ticks that passed while the job ran are left out.
        tick = max(tick + second, datetime.now(timezone.utc).replace(microsecond=0))
