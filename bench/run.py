"""Rounds of all programs in turn: every work once in each round, so that what else the machine does falls on all.

    python bench/run.py --programs target/release --installed target/bench/peers --lines target/bench/lines.jsonl

`make bench` calls it with servers of its own. Lines of earlier runs stay in the file unless it is another one;
it reports what fails, and the others go on.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A peer's burst may wait for a minute until all are enqueued, and is given up after two.
LIMIT_SECONDS = 600
# For stopping workers and removing queues and databases.
CLEANUP_SECONDS = 60
PEERS = ["celery", "celery-quorum", "dramatiq", "procrastinate", "pg-boss", "graphile-worker", "bullmq"]
# They insert in bulk into PostgreSQL, in transactions as large as ours; the report shows the better size.
BULK_PEERS, BATCHES = ["procrastinate", "pg-boss", "graphile-worker", "river"], [1_000, 10_000]


def works(smoke):
    """(program, arguments) of one round, small ones for a look whether everything runs."""
    count = {"drain": 20_000, "burst": 10_000} if not smoke else {"drain": 500, "burst": 200}
    seconds = 30 if not smoke else 5
    slots = [1, 8, 32, 64, 128] if not smoke else [8]
    for prefetch in (1, 16):
        for consumers in slots:
            ours = ["--work", "drain", "--count", count["drain"], "--slots", consumers, "--prefetch", prefetch]
            yield "sexton", ours
        yield "sexton", [*ours[:5], 32, "--prefetch", prefetch, "--workers", 2]
        yield "bare", ["--work", "drain", "--count", count["drain"], "--slots", 64, "--prefetch", prefetch]
        for peer in PEERS:
            yield peer, ["--work", "drain", "--count", count["drain"], "--prefetch", prefetch]
    for consumers in [8, 16, 32, 64] if not smoke else [8]:
        yield "sexton", ["--work", "commands", "--count", count["drain"] // 4, "--slots", consumers]
    yield "bare", ["--work", "commands", "--count", count["drain"] // 4]
    for peer in ["celery", "cron"]:
        yield peer, ["--work", "commands", "--count", count["drain"] // 4]
    for program in ["sexton", "bare"]:
        yield program, ["--work", "enqueue", "--count", count["drain"] * 5]
    for peer in BULK_PEERS:
        for batch in BATCHES:
            yield peer, ["--work", "enqueue", "--count", count["drain"] * 5, "--batch", batch]
    waiting, idle = (1_000_000, 60) if not smoke else (1_000, 5)
    yield "sexton", ["--work", "delayed", "--count", waiting, "--seconds", idle, "--slots", 8]
    yield "sexton", ["--work", "start", "--count", 500 if not smoke else 100, "--slots", 8]
    for consumers in [64, 128] if not smoke else [8]:
        for prefetch in (1, 16):
            ours = ["--work", "burst", "--count", count["burst"], "--slots", consumers, "--prefetch", prefetch]
            yield "sexton", ours
    for peer in [*PEERS, "celery-beat"]:
        # It makes some four hundred a minute where others make thousands.
        few = 1_000 if peer == "procrastinate" and not smoke else count["burst"]
        yield peer, ["--work", "burst", "--count", few]
    yield "sexton", ["--work", "lag", "--seconds", seconds, "--slots", 8]
    for peer in PEERS:
        yield peer, ["--work", "lag", "--seconds", seconds]
    for batch in [1, 15, 64] if not smoke else [8]:
        yield "sexton", ["--work", "journal", "--count", count["drain"] // 4, "--slots", batch]
    for defined in [1_000, 10_000, 100_000, 1_000_000] if not smoke else [1_000]:
        yield "sexton", ["--work", "defined", "--count", defined, "--seconds", seconds, "--slots", 64]
    yield "sexton", ["--work", "memory", "--slots", 8]
    yield "sexton", ["--work", "recovery", "--slots", 8]


def command(program, arguments, round_number, asked):
    arguments = [str(argument) for argument in arguments]
    if program in ("sexton", "bare"):
        return [str(asked.programs / "bench"), program, *arguments, "--round", str(round_number)]
    environment = []
    if "--seconds" in arguments:
        place = arguments.index("--seconds")
        environment = ["env", f"LAG_SECONDS={arguments[place + 1]}"]
        del arguments[place : place + 2]
    python = asked.installed / "venv" / "bin" / "python"
    runs = [str(python if python.exists() else sys.executable), str(HERE / "peers" / "run.py")]
    return [*environment, *runs, "--peer", program, *arguments, "--round", str(round_number),
            "--installed", str(asked.installed)]


def run(program, arguments, round_number, asked):
    """The lines that one measurement prints, and whether it ended well."""
    shown = " ".join([program, *(str(argument) for argument in arguments)])
    environment = {**os.environ, "TEST_BIN_DIR": str(asked.programs.resolve())}
    measuring = subprocess.Popen(command(program, arguments, round_number, asked), env=environment,
                                 stdout=subprocess.PIPE, text=True)
    try:
        output, _ = measuring.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        # Asked to end, it stops its workers and removes what it made; killed, it would leave them to the next.
        measuring.terminate()
        try:
            measuring.communicate(timeout=CLEANUP_SECONDS)
        except subprocess.TimeoutExpired:
            measuring.kill()
            measuring.communicate()
        print(f"round {round_number}: {shown}: given up after {LIMIT_SECONDS} s", file=sys.stderr)
        return [], False
    if measuring.returncode != 0:
        print(f"round {round_number}: {shown}: exit status {measuring.returncode}", file=sys.stderr)
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    for line in lines:
        text = line.get("missing") or f"{line.get('value')} {line.get('unit')}"
        print(f"round {round_number}: {shown}: {text}", file=sys.stderr)
    return lines, measuring.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=Path, required=True, help="the folder of Sexton's programs and of bench")
    parser.add_argument("--installed", type=Path, required=True, help="where the peers are installed")
    parser.add_argument("--lines", type=Path, required=True, help="the file that lines are added to")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="only this program; may be given several times")
    parser.add_argument("--work", action="append", help="only this work, such as commands; may be given several times")
    parser.add_argument("--smoke", action="store_true", help="little of everything, once; fails if ours fails")
    asked = parser.parse_args()
    ours_ran = True
    asked.lines.parent.mkdir(parents=True, exist_ok=True)
    with asked.lines.open("a", encoding="utf-8") as kept:
        for round_number in range(1, (1 if asked.smoke else asked.rounds) + 1):
            for program, arguments in works(asked.smoke):
                if asked.only and program not in asked.only or asked.work and arguments[1] not in asked.work:
                    continue
                lines, ended_well = run(program, arguments, round_number, asked)
                ours_ran = ours_ran and (ended_well or program not in ("sexton", "bare"))
                kept.writelines(json.dumps(line) + "\n" for line in lines)
                kept.flush()
    # Of a whole run the report says what is missing.
    return 0 if ours_ran or not asked.smoke else 1


if __name__ == "__main__":
    sys.exit(main())
