"""What the peers in Node have in common: a program of three commands."""

import json
import os
import subprocess

import works


def version(run, package):
    with open(os.path.join(run["environment"]["BENCH_NODE_MODULES"], package, "package.json")) as file:
        return json.load(file)["version"]


def command(run, word):
    return [run["node"], f"peer_{run['peer'].replace('-', '_')}.mjs", word]


def prepare(run):
    options = {"cwd": run["here"], "stdout": run["log"], "stderr": run["log"]}
    subprocess.run(command(run, "prepare"), env=works.environment_of(run), check=True, **options)


def enqueue(run):
    return command(run, "enqueue")


def bulk(run):
    return command(run, "bulk")


def work(run):
    return [command(run, "work") for _ in range(run["processes"])]
