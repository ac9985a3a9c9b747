"""What a run makes on the servers for itself, and removes."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from urllib.parse import urlsplit, urlunsplit


@contextlib.contextmanager
def database(url, name):
    """The address of a new database of this name, which is dropped in the end."""
    import psycopg

    def execute(statement):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement)

    execute(f'create database "{name}"')
    try:
        yield urlunsplit(urlsplit(url)._replace(path="/" + name))
    finally:
        execute(f'drop database "{name}" with (force)')


@contextlib.contextmanager
def redis(folder):
    """The address of the Redis of REDIS_URL, or of a private one that ends with the run."""
    if os.environ.get("REDIS_URL"):
        yield os.environ["REDIS_URL"]
        return
    program = redis_server(folder)
    data = tempfile.mkdtemp(prefix="bench-redis-")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What was acknowledged may be lost by a crash of the machine within a second: what Redis's own documentation
    # and BullMQ's advise for jobs. Evicting nothing is a demand of BullMQ.
    settings = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"]
    address = ["--bind", "127.0.0.1", "--port", str(port), "--dir", data]
    environment = os.environ | {"LD_LIBRARY_PATH": libraries(folder)}
    server = subprocess.Popen([program, *address, *settings], stdout=subprocess.DEVNULL, env=environment)
    try:
        until(lambda: _answers(port), 20, "Redis did not start")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(data, ignore_errors=True)


def redis_server(folder):
    """The program, of the machine or as install.sh unpacked it; None if there is none."""
    unpacked = os.path.join(folder, "redis/usr/bin/redis-server")
    return shutil.which("redis-server") or (unpacked if os.path.exists(unpacked) else None)


def libraries(folder):
    found = [os.path.join(folder, "redis/usr/lib", f"{os.uname().machine}-linux-gnu")]
    return ":".join(found + [path for path in [os.environ.get("LD_LIBRARY_PATH")] if path])


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def channel(url):
    """A channel to RabbitMQ."""
    import kombu

    with kombu.Connection(url) as connection, connection.channel() as opened:
        yield opened


def ready(url, queue):
    """How many messages wait in the queue, those in a worker's hands not counted."""
    with channel(url) as opened:
        return opened.queue_declare(queue, passive=True).message_count


def exists(url, queue):
    """Whether there is a queue of this name."""
    import kombu

    with kombu.Connection(url) as connection, connection.channel() as opened:
        try:
            opened.queue_declare(queue, passive=True)
        except connection.channel_errors:
            return False
    return True


def number(url, query):
    """The one number that a query gives."""
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()[0]


def analyze(url):
    """What autovacuum does within a minute of so many new rows: without it, plans are those of an empty table."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("analyze")


def until(condition, seconds, otherwise, pause=0.005):
    """Waits for the condition; raises a TimeoutError that says `otherwise`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(otherwise() if callable(otherwise) else otherwise)
        time.sleep(pause)


def stop(process, seconds=20):
    """Ends a process with its children: asks it first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
