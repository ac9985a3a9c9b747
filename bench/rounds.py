"""Several rounds of several programs, summed up: medians, spreads and ratios to Sexton. Pure."""

import statistics
from collections import defaultdict
from dataclasses import dataclass, field

OURS = "sexton"
BARE = "bare"
# Settings that tell rounds of one peer apart; all others are only reported.
VARIANT = ("prefetch", "processes", "record", "slots", "workers", "part", "scale", "batch")


@dataclass
class Figure:
    """One peer at one work with one setting, over all rounds."""

    peer: str
    work: str
    unit: str
    version: str
    settings: dict
    values: list  # one for each round that finished
    p99: list = field(default_factory=list)
    processor: list = field(default_factory=list)  # milliseconds of the whole machine for each task
    unfinished: list = field(default_factory=list)

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def p99_median(self):
        return statistics.median(self.p99) if self.p99 else None

    @property
    def processor_median(self):
        return statistics.median(self.processor) if self.processor else None

    @property
    def higher_is_better(self):
        return self.unit.endswith("/s")

    @property
    def is_speed(self):
        """A rate or a time, not a size."""
        return self.higher_is_better or self.unit in ("ms", "s")

    @property
    def variant(self):
        return tuple((name, self.settings[name]) for name in VARIANT if self.settings.get(name) is not None)

    def better_than(self, other):
        if self.median is None or other.median is None:
            return self.median is not None
        return self.median > other.median if self.higher_is_better else self.median < other.median


def work_of(line):
    """What is compared with what: a drain at prefetch 1 is not one at 16."""
    asked = line.get("prefetch", line.get("settings", {}).get("prefetch"))
    return f"{line['work']}-{asked}" if line["work"] == "drain" and asked is not None else line["work"]


def figures(lines):
    """The figures of all lines that hold one, in the order of their first lines."""
    found = {}
    for line in lines:
        if "missing" in line:
            continue
        settings = line.get("settings", {})
        variant = tuple((name, str(settings.get(name))) for name in VARIANT)
        key = (line["peer"], work_of(line), variant)
        figure = found.setdefault(
            key, Figure(line["peer"], work_of(line), line["unit"], line.get("version", ""), settings, [])
        )
        if line["value"] is None:
            figure.unfinished.append(line.get("unfinished", {}))
        else:
            figure.values.append(line["value"])
            figure.unit = line["unit"]
        if "p99" in line:
            figure.p99.append(line["p99"])
        if "processor_ms" in line:
            figure.processor.append(line["processor_ms"])
    return list(found.values()) + composites(found.values())


def composites(found):
    """The bare limit of a drain: a task takes its time of the broker, then its time of the database."""
    parts = defaultdict(dict)
    for figure in found:
        if figure.peer == BARE and figure.values and figure.settings.get("part") in ("broker", "database"):
            parts[figure.work][figure.settings["part"]] = figure
    made = []
    for work, by_part in parts.items():
        if len(by_part) == 2:
            broker, database = by_part["broker"], by_part["database"]
            values = [1 / (1 / one + 1 / other) for one, other in zip(broker.values, database.values)]
            made.append(Figure(BARE, work, broker.unit, broker.version, {"part": "composite"}, values))
    return made


def missing(lines):
    """Why each missing peer is missing; what is missing for one work only names the work."""
    why = {}
    for line in lines:
        if "missing" in line:
            why.setdefault((line["peer"], line["missing"]), []).append(line.get("work", ""))
    return [(peer, sorted(set(works) - {""}), reason) for (peer, reason), works in why.items()]


def best(found):
    """Of each peer its best variant; what is kept of a task, and the parts of the bare limit, stay apart."""
    kept = {}
    for figure in found:
        key = (figure.peer, figure.settings.get("part"), figure.settings.get("record"))
        if key not in kept or figure.better_than(kept[key]):
            kept[key] = figure
    return list(kept.values())


def ranked(found):
    """The best first, those that did not finish last."""
    return sorted(found, key=_rank)


def _rank(figure):
    if figure.median is None:
        return (1, 0)
    return (0, -figure.median if figure.higher_is_better else figure.median)


def ratio(ours, other):
    """How many times better Sexton is than the other: above 1 is better than it."""
    if ours is None or ours.median is None or other.median is None:
        return None
    over, under = (ours.median, other.median) if ours.higher_is_better else (other.median, ours.median)
    return over / under if under > 0 else None


def ratios(base, other):
    """How many times the base the other is, in each round of both."""
    return [its / of_base for of_base, its in zip(base.values, other.values) if of_base > 0]


def comparison(ours, other):
    """In plain words how Sexton compares with the other: `7.0× slower`, `13× faster`, `as fast`."""
    times = ratio(ours, other)
    if not times:
        return None
    better, worse, same = ("faster", "slower", "as fast") if ours.is_speed else ("less", "more", "as much")
    factor = max(times, 1 / times)
    shown = f"{factor:.1f}" if factor < 9.95 else f"{factor:.0f}"
    return same if shown == "1.0" else f"{shown}× {better if times > 1 else worse}"


def by_work(found):
    works = defaultdict(list)
    for figure in found:
        works[figure.work].append(figure)
    return dict(works)
