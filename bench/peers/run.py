#!/usr/bin/env python3
"""Measures one peer at one work, once, and prints one line of JSON; README.md says what it holds.

    python bench/peers/run.py --peer celery --work drain --count 20000 --round 1
"""

import argparse
import contextlib
import importlib
import json
import os
import secrets
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INSTALLED = os.path.join(HERE, "../../target/bench/peers")

# Which module measures a peer, and what of install.sh's folder and of the servers it needs.
PEERS = {
    "celery": ("peer_celery", {"python", "rabbitmq"}),
    "celery-quorum": ("peer_celery", {"python", "rabbitmq"}),
    "celery-beat": ("peer_celery_beat", {"python", "rabbitmq"}),
    "dramatiq": ("peer_dramatiq", {"python", "rabbitmq"}),
    "procrastinate": ("peer_procrastinate", {"python", "postgresql"}),
    "pg-boss": ("peer_pg_boss", {"python", "node", "postgresql"}),
    "graphile-worker": ("peer_graphile_worker", {"python", "node", "postgresql"}),
    "river": ("peer_river", {"python", "river", "postgresql"}),
    "bullmq": ("peer_bullmq", {"python", "node", "redis"}),
    "cron": ("peer_cron", {"python", "cron"}),
}
DEFAULT_COUNTS = {"drain": 20_000, "commands": 5_000, "burst": 10_000, "lag": None, "enqueue": 100_000}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, choices=PEERS)
    parser.add_argument("--work", required=True, choices=DEFAULT_COUNTS)
    parser.add_argument("--count", type=int, help="tasks; 20000 for drain, 10000 for burst, 100000 for enqueue")
    parser.add_argument("--round", type=int, default=1)
    parser.add_argument("--prefetch", type=int, default=1, choices=(1, 16))
    parser.add_argument("--batch", type=int, default=1_000, help="jobs of one transaction of enqueue")
    parser.add_argument("--processes", type=int, default=1, help="worker processes")
    parser.add_argument("--record", choices=("default", "yes", "no"), default="default", help="keep results")
    parser.add_argument("--installed", default=INSTALLED, help="the folder that install.sh filled")
    return parser.parse_args()


def missing_of(asked, needs):
    """Why the peer cannot be measured here, or None."""
    folder = asked.installed
    notes = os.path.join(folder, "missing")
    for name in sorted(needs):
        note = os.path.join(notes, name)
        if os.path.exists(note):
            with open(note) as text:
                return text.read().strip()
    if not os.path.exists(os.path.join(folder, "venv/bin/python")):
        return "it is not installed; run bench/peers/install.sh"
    if "node" in needs and not node_of(folder):
        return "its npm packages are not installed; run bench/peers/install.sh"
    if "river" in needs and not os.path.exists(river_of(folder)):
        return "its program is not built; run bench/peers/install.sh"
    return None


def node_of(folder):
    """The Node that came with the packages, for the processor of this machine."""
    processor = {"x86_64": "x64", "aarch64": "arm64"}.get(os.uname().machine)
    program = os.path.join(folder, f"node/node_modules/node-linux-{processor}/bin/node")
    return program if os.path.exists(program) else None


def river_of(folder):
    """The program around River's client."""
    return os.path.join(folder, "river/release/bench-river")


def into_environment(folder):
    """Runs this program again with the Python that has the peers' packages."""
    python = os.path.join(folder, "venv/bin/python")
    if os.path.abspath(sys.prefix) != os.path.abspath(os.path.join(folder, "venv")):
        # Nothing compiled is left in the source tree.
        environment = os.environ | {"PYTHONPYCACHEPREFIX": os.path.join(folder, "compiled")}
        os.execve(python, [python, os.path.abspath(__file__), *sys.argv[1:]], environment)


@contextlib.contextmanager
def run_of(asked, needs):
    """What one run is: its name, its servers, its marks."""
    import servers
    from marks import Marks

    folder = os.path.abspath(asked.installed)
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
        log = stack.enter_context(open(os.path.join(folder, f"{asked.peer}.log"), "w"))
        name = f"bench_{secrets.token_hex(4)}"
        run = {
            "name": name, "here": HERE, "installed": folder, "scratch": scratch, "log": log, "peer": asked.peer,
            "work": asked.work,
            "count": asked.count or DEFAULT_COUNTS[asked.work], "prefetch": asked.prefetch,
            "processes": asked.processes, "record": asked.record, "python": sys.executable, "node": node_of(folder),
            "river": river_of(folder),
            "environment": {
                "BENCH_MARKS": os.path.join(scratch, "marks"),
                "BENCH_NODE_MODULES": os.path.join(folder, "node/node_modules"),
            },
        }
        run["amqp"] = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")
        if "postgresql" in needs:
            server = os.environ.get("DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres")
            run["database"] = stack.enter_context(servers.database(server, name))
        if "redis" in needs:
            run["redis"] = stack.enter_context(servers.redis(folder))
        yield run, Marks.create(run["environment"]["BENCH_MARKS"])


def measure(asked, module, needs):
    import works

    peer = importlib.import_module(module)
    does = getattr(peer, "WORKS", works.WORKS)
    if asked.work not in does:
        return {"missing": f"it has nothing that does the work {asked.work}"}
    with run_of(asked, needs) as (run, marks):
        # Nothing of a worker has a part in enqueueing.
        settings = {"batch": asked.batch} if asked.work == "enqueue" else peer.settings(run)
        run["settings"] = {"processes": asked.processes, **settings}
        # Another amount of work than usual is another variant, and has no ratio.
        if asked.count not in (None, DEFAULT_COUNTS[asked.work]):
            run["settings"]["scale"] = asked.count
        said = {"version": peer.version(run), "settings": run["settings"]}
        peer.prepare(run)
        try:
            said |= does[asked.work](peer, run, marks)
        except works.Unfinished as unfinished:
            said |= {"value": None, "unit": "ms", "samples": [], "unfinished": unfinished.figures}
        finally:
            peer.remove(run)
    return said


def main():
    asked = arguments()
    module, needs = PEERS[asked.peer]
    if asked.record == "yes" and asked.peer in ("celery", "celery-quorum", "dramatiq"):
        needs = needs | {"redis"}
    line = {"peer": asked.peer, "work": asked.work, "round": asked.round}
    if asked.work == "drain":
        line["prefetch"] = asked.prefetch
    if why := missing_of(asked, needs):
        print(json.dumps(line | {"missing": why}))
        return
    into_environment(asked.installed)
    # Who ends this program ends what it started and removes what it made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        print(json.dumps(line | measure(asked, module, needs)))
    except Exception as error:
        log = os.path.join(asked.installed, f"{asked.peer}.log")
        sys.exit(f"{asked.peer}, {asked.work}: {type(error).__name__}: {error}; its log is {log}")


if __name__ == "__main__":
    main()
