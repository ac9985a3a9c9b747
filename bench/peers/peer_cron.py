"""cron itself, of Debian: commands only, as the lines of one crontab that are all due at the same minute."""

import os
import time

import works
from processor import busy_ms, forks

MINUTE_MS = 60_000
# For cron to start and to read its crontab.
LEAD_MS = 5_000
# cron forks itself for each line, and once more for the shell that runs it.
FORKS = 2
# cron reads no crontab with more.
MOST_LINES = 10_000
POLL_SECONDS = 0.02


def version(run):
    with open(os.path.join(run["installed"], "cron/version")) as text:
        return text.read().strip()


def settings(run):
    return {"concurrency": "all", "record": "none"}


def prepare(run):
    if run["count"] > MOST_LINES:
        raise ValueError(f"cron reads no crontab of more than {MOST_LINES} lines; ask for fewer with --count")
    with open(crontab(run), "w") as file:
        file.write("* * * * * /bin/true\n" * run["count"])


def work(run):
    """cron in a mount namespace: another cron's files are hidden from it, and its own from the machine."""
    script = os.path.join(run["here"], "cron.sh")
    unpacked = os.path.join(run["installed"], "cron")
    return [["unshare", "--mount", "--propagation", "private", "sh", script, crontab(run), unpacked]]


def remove(run):
    pass


def crontab(run):
    return os.path.join(run["scratch"], "crontab")


def commands(peer, run, marks):
    """Lines per second, from the first that cron starts to the end of the last."""
    due_ms = (int(time.time() * 1000 + LEAD_MS) // MINUTE_MS + 1) * MINUTE_MS
    with works.workers(peer, run) as (cron,):
        works.sleep_until(due_ms - 200)
        if cron.poll() is not None:
            raise RuntimeError(f"cron ended with status {cron.returncode}")
        forks_before, busy = forks(), busy_ms()
        begun = None
        while True:
            now = time.monotonic()
            # The kernel's list of children is long while cron has thousands, so it is read before and after only.
            if begun is None and has_children(cron.pid):
                begun = now
            # Forks of the whole machine, so they may be enough a little early: cron has children then.
            started = (forks() - forks_before) // FORKS
            if begun is not None and started >= run["count"] and not has_children(cron.pid):
                break
            # The next minute's lines would come on top.
            if time.time() * 1000 > due_ms + MINUTE_MS - 1000:
                raise works.Unfinished(min(started, run["count"]), MINUTE_MS - 1000)
            time.sleep(POLL_SECONDS)
        processor_ms = (busy_ms() - busy) / run["count"]
    value = run["count"] / (now - begun)
    return {"value": value, "unit": "tasks/s", "samples": [value], "processor_ms": processor_ms}


def has_children(process):
    with open(f"/proc/{process}/task/{process}/children", "rb", buffering=0) as children:
        return children.read(1) != b""


WORKS = {"commands": commands}
