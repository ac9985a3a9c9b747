#!/usr/bin/env python3
"""Sums up the lines that the measuring programs printed: tables, plots, and the marked sections of a page.

    python bench/report.py target/bench/*.jsonl                                   # prints the tables
    python bench/report.py --page docs/internals/performance.md --page bench/measured.md \
        --plots docs/internals/performance target/bench/*.jsonl
    python bench/report.py --check                                                # checks the sums themselves

The program replaces what stands between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` of a page. NAME is a work
(burst, lag, drain-1, drain-16 or any other in the lines), `resources`, `delayed-cost`, `missing`, `settings` or
`versions`.
"""

import argparse
import json
import os
import re
import statistics
import sys
import unittest

sys.dont_write_bytecode = True  # nothing compiled is left in the source tree
import plots  # noqa: E402
import rounds  # noqa: E402

TITLES = {
    "burst": "Burst: from due to the start of the last task",
    "lag": "Lag: from due to the start of the task, one a second",
    "start": "Start: from a commit that enqueues to the start of the task, one by one",
    "delayed": "Delayed: from due to the start of the task, enqueued for later",
    "defined": "Processor time for a hundred firings, beside so many other jobs",
    "commands": "Commands: /bin/true as the task",
    "enqueue": "Executions enqueued in bulk; jobs and rows inserted likewise",
    "enqueue-one": "Executions enqueued one by one, a thousand in a transaction; rows inserted likewise",
    "drain-1": "Drain of no-op tasks, prefetch 1",
    "drain-16": "Drain of no-op tasks, prefetch 16",
    "drain": "Drain of no-op tasks, peers without prefetch",
}
# Works that no peer can be compared in: their best figures are one table.
RESOURCES = {
    "memory-scheduler": "memory of an idle scheduler",
    "memory-worker": "memory of an idle worker",
    "recovery-again": "recovery, the worker restarts under its name",
    "recovery-other": "recovery by another worker",
}
# What costs while nothing waits and while many executions do, side by side.
COSTS = {
    "delayed-idle": "processor time of PostgreSQL in an idle minute",
    "delayed-relay": "a round of the relay",
    "delayed-planner": "a round of the planner",
}
MARKED = re.compile(r"(<!-- bench:([a-z0-9-]+) -->\n).*?(<!-- /bench:\2 -->)", re.DOTALL)


def number(value):
    """Three digits that mean something."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def label(figure):
    said = figure.settings
    parts = [f"{said['slots']} slots"] if said.get("slots") else []
    # Drains of different prefetches are works of their own.
    parts += ["prefetch 16"] if figure.work == "burst" and said.get("prefetch") == 16 else []
    parts += [str(said["part"])] if said.get("part") else []
    parts += [f"{said['processes']} processes"] if said.get("processes", 1) != 1 else []
    parts += [f"scale {said['scale']}"] if said.get("scale") else []
    parts += [f"batches of {said['batch']:,}"] if figure.work == "enqueue" and said.get("batch") else []
    return f"{figure.peer} ({', '.join(parts)})" if parts else figure.peer


def value(figure):
    if figure.median is None:
        started = max((one.get("started", 0) for one in figure.unfinished), default=0)
        seconds = max((one.get("after_ms", 0) for one in figure.unfinished), default=0) / 1000
        return f"not done: {started:,} after {seconds:.0f} s"
    stuck = f" ({len(figure.unfinished)} rounds not done)" if figure.unfinished else ""
    return number(figure.median) + stuck


def ours(shown):
    """The best of Sexton."""
    return next((figure for figure in rounds.ranked(shown) if figure.peer == rounds.OURS), None)


def spread(figure):
    return f"{number(min(figure.values))}–{number(max(figure.values))}" if figure.values else ""


def table(found):
    """The best of each peer with each record, ranked; the last column compares Sexton with it in plain words."""
    shown = rounds.ranked(rounds.best(found))
    unit, tails = shown[0].unit, any(figure.p99 for figure in shown)
    costs = any(figure.processor for figure in shown)
    head = ["", f"{'p50' if tails else 'median'}, {unit}", *([f"p99, {unit}"] if tails else [])]
    head += ["processor, ms"] if costs else []
    rows = [[*head, "least–most", "rounds", "record", "Sexton is"]]
    for figure in shown:
        like = ours(shown)
        of_as_much = like is None or like.settings.get("scale") == figure.settings.get("scale")
        compared = rounds.comparison(like, figure) if of_as_much else None
        words = "" if figure.peer == rounds.OURS else compared or "–"
        tail = [number(figure.p99_median)] if tails else []
        tail += [number(figure.processor_median)] if costs else []
        done = str(len(figure.values) + len(figure.unfinished))
        record = str(figure.settings.get("record", ""))
        rows.append([label(figure), value(figure), *tail, spread(figure), done, record, words])
    return lines_of(rows, 1)


def resources(found):
    """One row for each of the works that only Sexton is measured in."""
    rows = [["", "median", "least–most", "rounds"]]
    for work, of_work in rounds.by_work(found).items():
        for figure in rounds.ranked(rounds.best(of_work))[:1] if work in RESOURCES else []:
            rows.append([RESOURCES[work], f"{value(figure)} {figure.unit}", spread(figure), str(len(figure.values))])
    return lines_of(rows, 1)


def delayed_costs(found):
    """One row for each cost: while nothing waits, while most wait, and the ratio of the two in each run."""
    rows = []
    for work, name in COSTS.items():
        by_waiting = {figure.settings["waiting"]: figure for figure in found if figure.work == work}
        base, other = by_waiting.get(0), by_waiting[max(by_waiting)] if by_waiting else None
        if base is None or other is base:
            continue
        head = ["", "nothing waits", f"{other.settings['waiting']:,} wait", "ratio", "least–most", "rounds"]
        compared = rounds.ratios(base, other)
        least_most = f"{min(compared):.2f}–{max(compared):.2f}"
        medians = [f"{value(figure)} {figure.unit}" for figure in (base, other)]
        rows.append([name, *medians, f"{statistics.median(compared):.2f}", least_most, str(len(compared))])
    return lines_of([head, *rows], 1) if rows else None


def lines_of(rows, text_columns):
    """A Markdown table; the columns after the first ones are numbers."""
    bar = ["---"] * text_columns + ["---:"] * (len(rows[0]) - text_columns)
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, f"|{'|'.join(bar)}|", *body])


def settings(found):
    """All that each figure was measured with, the variants that are not the best included."""
    rows = [["", "work", "median", "unit", "settings"]]
    for figure in found:
        said = ", ".join(f"{name} {value}" for name, value in figure.settings.items() if value is not None)
        rows.append([label(figure), figure.work, value(figure), figure.unit, said])
    return lines_of(rows, 5)


def versions(found):
    known = {figure.peer: figure.version for figure in found if figure.version}
    return lines_of([["", "version"], *sorted(map(list, known.items()))], 2)


def absent(lines):
    said = []
    for peer, works, why in rounds.missing(lines):
        of_works = f" ({', '.join(works)})" if works else ""
        said.append(f"- {peer}{of_works}: {why}")
    return "\n".join(said) or "No peer is missing."


def sections(lines):
    """The text of each section that can stand in a page."""
    found = rounds.figures(lines)
    made = {work: table(of_work) for work, of_work in rounds.by_work(found).items()}
    if any(work in RESOURCES for work in made):
        made["resources"] = resources(found)
    if compared := delayed_costs(found):
        made["delayed-cost"] = compared
    return made | {"missing": absent(lines), "settings": settings(found), "versions": versions(found)}


def plot(work, found):
    rows = []
    for figure in rounds.ranked(rounds.best(found)):
        least, most = (min(figure.values), max(figure.values)) if figure.values else (None, None)
        rows.append((figure.peer, label(figure), figure.median, least, most, value(figure)))
    return plots.bars(f"{TITLES.get(work, work)} ({found[0].unit})", rows)


def fill(page, made):
    """The page with its marked sections replaced; one whose data is not there keeps what it has."""
    def section(match):
        text = made.get(match[2])
        return match[0] if text is None else f"{match[1]}{text}\n{match[3]}"

    return MARKED.sub(section, page)


def read(paths):
    lines = []
    for path in paths:
        with open(path) as file:
            lines += [json.loads(text) for text in file if text.strip()]
    return lines


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help="files of JSON lines")
    parser.add_argument("--page", action="append", help="a Markdown page whose marked sections are replaced")
    parser.add_argument("--plots", help="a folder for NAME.svg of each work")
    parser.add_argument("--check", action="store_true", help="run the tests of the sums")
    asked = parser.parse_args()
    if asked.check:
        tests = unittest.defaultTestLoader.loadTestsFromName("check_report")
        sys.exit(not unittest.TextTestRunner().run(tests).wasSuccessful())
    lines = read(asked.data)
    made = sections(lines)
    if asked.plots:
        os.makedirs(asked.plots, exist_ok=True)
        for work, found in rounds.by_work(rounds.figures(lines)).items():
            write(os.path.join(asked.plots, f"{work}.svg"), plot(work, found))
    for path in asked.page or []:
        with open(path) as file:
            page = file.read()
        write(path, fill(page, made))
    if not asked.page:
        print("\n\n".join(f"## {TITLES.get(name, name)}\n\n{text}" for name, text in made.items()))


if __name__ == "__main__":
    main()
