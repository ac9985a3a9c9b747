"""Dramatiq on RabbitMQ. The module is what its workers load as well."""

import importlib.metadata
import os
import sys
import time

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

import jobs
import marks
import servers

LEAD = 45
THREADS = 8


def version(run):
    return importlib.metadata.version("dramatiq")


def settings(run):
    return {
        "queue": "classic",
        "threads": THREADS,
        "prefetch": run["prefetch"],
        "dramatiq_queue_prefetch": THREADS * run["prefetch"],
        "dramatiq_delay_queue_prefetch": 20_000,
        "dramatiq_worker_timeout": 100,
        "acks": "late",
        "record": "redis" if run["record"] == "yes" else "none",
    }


def prepare(run):
    """Nothing: the first to enqueue declares the queues."""
    run["environment"] |= {name: str(said) for name, said in run["settings"].items() if name.startswith("dramatiq_")}


def enqueue(run):
    return [run["python"], "peer_dramatiq.py", "enqueue"]


def work(run):
    worker = [run["python"], "-m", "dramatiq", "peer_dramatiq", "--skip-logging"]
    return [[*worker, "--processes", str(run["processes"]), "--threads", str(run["settings"]["threads"])]]


def unsettled(run):
    return servers.ready(run["amqp"], run["name"])


def remove(run):
    with servers.channel(run["amqp"]) as channel:
        for name in (run["name"], run["name"] + ".DQ", run["name"] + ".XQ"):
            channel.queue_delete(name)


def broker(run):
    made = RabbitmqBroker(url=run["amqp"])
    if run["settings"]["record"] == "redis":
        from dramatiq.results import Results
        from dramatiq.results.backends import RedisBackend

        made.add_middleware(Results(backend=RedisBackend(url=run["redis"]), store_results=True))
    return made


if "BENCH_RUN" in os.environ:
    dramatiq.set_broker(broker(jobs.run()))
    marked = marks.of_environment()

    @dramatiq.actor(queue_name=jobs.run()["name"])
    def task(number):
        marked.started(number)


def enqueue_all():
    for number, due in jobs.jobs():
        # A delay is from now on, which is read here and once more within a millisecond by Dramatiq.
        delay = None if due is None else max(0, due - int(time.time() * 1000))
        task.send_with_options(args=(number,), delay=delay)


if __name__ == "__main__" and sys.argv[1:] == ["enqueue"]:
    enqueue_all()
