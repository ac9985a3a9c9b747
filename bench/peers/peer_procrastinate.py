"""procrastinate on PostgreSQL. The module is its application as well."""

import datetime
import importlib.metadata
import itertools
import os
import sys
import time

import procrastinate

import jobs
import marks
import servers
import works

LEAD = 20
WORKS = works.WITH_BULK
BATCH = 1000


def version(run):
    return importlib.metadata.version("procrastinate")


def settings(run):
    return {
        "concurrency": 16,
        "pool": 20,
        "fetch_job_polling_interval": 0.1,
        "delete_jobs": "always" if run["record"] == "no" else "never",
        "prefetch": None,
        "record": "none" if run["record"] == "no" else "job and its events",
    }


def application(run):
    # The one that workers need runs synchronous calls as well.
    size = run["settings"].get("pool", 4)
    connector = procrastinate.PsycopgConnector(conninfo=run["database"], max_size=size)
    return procrastinate.App(connector=connector)


def prepare(run):
    made = application(run)
    with made.open():
        made.schema_manager.apply_schema()


def enqueue(run):
    return [run["python"], "peer_procrastinate.py", "enqueue"]


def bulk(run):
    return [run["python"], "peer_procrastinate.py", "bulk"]


def work(run):
    said = run["settings"]
    command = [run["python"], "-m", "procrastinate", "--app", "peer_procrastinate.app"]
    command += ["--log-level", "warning", "worker"]
    options = {
        "--concurrency": said["concurrency"],
        "--fetch-job-polling-interval": said["fetch_job_polling_interval"],
        "--delete-jobs": said["delete_jobs"],
    }
    words = [str(word) for option in options.items() for word in option]
    return [[*command, *words] for _ in range(run["processes"])]


def unsettled(run):
    waiting = "select count(*) from procrastinate_jobs where status in ('todo', 'doing')"
    return servers.number(run["database"], waiting)


def remove(run):
    """Nothing: all is in the database."""


if "BENCH_RUN" in os.environ:
    app = application(jobs.run())
    marked = marks.of_environment()

    @app.task(name="bench")
    async def task(number):
        marked.started(number)


def enqueue_all():
    with app.open():
        for due, group in itertools.groupby(jobs.jobs(), key=lambda job: job[1]):
            at = None if due is None else datetime.datetime.fromtimestamp(due / 1000, datetime.timezone.utc)
            while batch := list(itertools.islice(group, BATCH)):
                task.configure(schedule_at=at).batch_defer(*({"number": number} for number, _ in batch))


def insert_in_bulk():
    run = jobs.run()
    params = [{"order": number} for number in range(1, run["count"] + 1)]
    batch = run["settings"]["batch"]
    with app.open():
        began = time.monotonic()
        for start in range(0, len(params), batch):
            task.batch_defer(*params[start : start + batch])
        print(time.monotonic() - began)


if __name__ == "__main__":
    {"enqueue": enqueue_all, "bulk": insert_in_bulk}[sys.argv[1]]()
