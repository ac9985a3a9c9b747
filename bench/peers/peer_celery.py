"""Celery on RabbitMQ: `celery` with classic queues, `celery-quorum` with quorum queues, and so with its own
delayed delivery. The module is Celery's application as well."""

import datetime
import importlib.metadata
import os
import subprocess
import sys

from celery import Celery
from kombu import Exchange, Queue

import jobs
import marks
import servers
import works

LEAD = 45
WORKS = works.WORKS | {"commands": works.drain}
DELAYED = [f"celery_delayed_{level}" for level in range(28)]


def version(run):
    return importlib.metadata.version("celery")


def settings(run):
    commands = run["work"] == "commands"
    return {
        "queue": "quorum" if run["peer"] == "celery-quorum" else "classic",
        "pool": "prefork" if commands else "threads",
        "concurrency": 4 if commands else 8,
        "prefetch": run["prefetch"],
        "acks": "early",
        "record": "redis" if run["record"] == "yes" else "none",
    }


def application(run):
    name, said = run["name"], run["settings"]
    # A topic exchange is what delayed delivery with quorum queues asks for.
    queue = Queue(name, Exchange(name, type="topic"), name, queue_arguments={"x-queue-type": said["queue"]})
    made = Celery("bench")
    made.conf.update(
        broker_url=run["amqp"],
        task_queues=[queue],
        task_default_queue=name,
        task_default_exchange=name,
        task_default_exchange_type="topic",
        task_default_routing_key=name,
        result_backend=run["redis"] if said["record"] == "redis" else None,
        task_ignore_result=said["record"] == "none",
        worker_prefetch_multiplier=said["prefetch"],
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
    )
    return made


def prepare(run):
    """The queue, so that it exists before a worker does."""
    run["delayed_found"] = servers.exists(run["amqp"], DELAYED[0])
    with servers.channel(run["amqp"]) as channel:
        application(run).conf.task_queues[0](channel).declare()


def enqueue(run):
    return [run["python"], "peer_celery.py", "enqueue"]


def work(run):
    worker = [run["python"], "-m", "celery", "-A", "peer_celery", "worker", "--loglevel", "WARNING"]
    pool = ["--pool", run["settings"]["pool"], "--concurrency", str(run["settings"]["concurrency"])]
    lean = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return [[*worker, *pool, *lean, "-n", f"{run['name']}_{number}@%h"] for number in range(run["processes"])]


def unsettled(run):
    return servers.ready(run["amqp"], run["name"])


def remove(run):
    """The queue, and those of delayed delivery if they were not there before."""
    names = [run["name"]]
    if run["settings"]["queue"] == "quorum" and not run["delayed_found"]:
        names += [*DELAYED, "celery_delayed_delivery"]
    with servers.channel(run["amqp"]) as channel:
        for name in names:
            channel.queue_delete(name)
            channel.exchange_delete(name)


if "BENCH_RUN" in os.environ:
    app = application(jobs.run())
    runs_commands = jobs.run()["work"] == "commands"

    @app.task(name="bench")
    def task(number):
        marks.of_environment().started(number)
        if runs_commands:
            subprocess.run(["/bin/true"], check=True)


def enqueue_all():
    with app.producer_or_acquire() as producer:
        for number, due in jobs.jobs():
            eta = None if due is None else datetime.datetime.fromtimestamp(due / 1000, datetime.timezone.utc)
            task.apply_async((number,), eta=eta, producer=producer)


if __name__ == "__main__" and sys.argv[1:] == ["enqueue"]:
    enqueue_all()
