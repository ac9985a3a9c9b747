"""Contends for a lock from Python, with psycopg or with django-pglock; run.sh says how.

Until its standard input ends it tries to take the lock. If it gets it, it writes when it began by the database's clock, works
for some milliseconds, writes when it ended, and releases the lock; if not, it writes that it was refused. With `hold` it takes
the lock once, and holds it until its standard input ends.
"""

import os
import random
import sys
import threading
import time
from contextlib import contextmanager
from datetime import datetime, timezone

import psycopg

KIND, KEY, HOLDER = sys.argv[1:4]
IS_HOLDING = sys.argv[4:] == ["hold"]

ended = threading.Event()


class Psycopg:
    """The advisory lock of a number, or with a tick."""

    def __init__(self):
        self.connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, application_name=HOLDER)
        self.tick = None

    def answer(self, statement, values):
        return self.connection.execute(statement, values).fetchone()[0]

    @contextmanager
    def lock(self):
        if KIND == "tick":
            now = datetime.now(timezone.utc)
            self.tick = now.replace(microsecond=now.microsecond // 100_000 * 100_000)
            take, release, values = "guard_try(%s, %s)", "guard_done(%s, %s)", (int(KEY), self.tick)
        else:
            take, release, values = "pg_try_advisory_lock(%s)", "pg_advisory_unlock(%s)", (int(KEY),)
        schema = "sexton." if KIND == "tick" else ""
        is_taken = self.answer(f"SELECT {schema}{take}", values)
        yield is_taken
        if is_taken and not self.answer(f"SELECT {schema}{release}", values):
            raise RuntimeError("the lock was not held to the end")


class Pglock:
    """The advisory lock that django-pglock takes for a name."""

    def __init__(self):
        import django
        from django.conf import settings
        from django.db import connection

        names = psycopg.conninfo.conninfo_to_dict(os.environ["DATABASE_URL"])
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": names["dbname"],
            "USER": names.get("user", ""),
            "PASSWORD": names.get("password", ""),
            "HOST": names.get("host", ""),
            "PORT": names.get("port", ""),
        }
        settings.configure(DATABASES={"default": database}, INSTALLED_APPS=["pgactivity", "pglock"])
        django.setup()
        self.connection = connection
        self.tick = None

    def answer(self, statement, values):
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchone()[0]

    def lock(self):
        import pglock

        return pglock.advisory(KEY, timeout=0)


def work(session):
    began = "INSERT INTO held (lock, holder, tick) VALUES (%s, %s, %s) RETURNING id"
    identity = session.answer(began, (KEY, HOLDER, session.tick))
    if IS_HOLDING:
        print("holding", flush=True)
        ended.wait()
    time.sleep(random.random() * 0.005)
    session.answer("UPDATE held SET ended = clock_timestamp() WHERE id = %s RETURNING id", (identity,))


def wait_for_end():
    sys.stdin.read()
    ended.set()


threading.Thread(target=wait_for_end, daemon=True).start()
session = Pglock() if KIND == "pglock" else Psycopg()
session.answer("SELECT 1", ())
print("ready", flush=True)
while not ended.is_set():
    with session.lock() as is_taken:
        if is_taken:
            work(session)
    if is_taken and IS_HOLDING:
        break
    if not is_taken:
        session.answer("INSERT INTO refused (lock, holder) VALUES (%s, %s) RETURNING id", (KEY, HOLDER))
    time.sleep(random.random() * 0.02)
