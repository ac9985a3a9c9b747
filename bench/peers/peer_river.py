"""River on PostgreSQL, by its client for Rust: enqueue only. Its program is in the folder river."""

import os
import re
import subprocess

import servers
import works

WORKS = {"enqueue": works.bulk}


def version(run):
    with open(os.path.join(run["here"], "river/Cargo.lock")) as lock:
        return re.search(r'name = "riverqueue"\nversion = "([^"]+)"', lock.read())[1]


def prepare(run):
    options = {"cwd": run["here"], "stdout": run["log"], "stderr": run["log"]}
    subprocess.run([run["river"], "prepare"], env=works.environment_of(run), check=True, **options)


def bulk(run):
    return [run["river"], "bulk"]


def unsettled(run):
    return servers.number(run["database"], "select count(*) from river_job where finalized_at is null")


def remove(run):
    """Nothing: all is in the database."""
