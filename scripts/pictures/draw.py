"""Draws a Grafana dashboard as SVG, from its JSON and Prometheus' answers: places, titles, units, thresholds and legends are
those of the JSON, the look is Grafana's light theme, as near as needed."""

import math
import re
import time
from html import escape

from figures import nice_steps, shown

COLUMN, LINE, GAP, TOP = 50, 36, 8, 64
POINTS = 110
# What Grafana takes for the time between two scrapes unless its data source says otherwise.
SCRAPE_SECONDS = 15
TEXT, FAINT, GRID, BACK, BORDER = "#24292e", "#6b7178", "#e6e8ea", "#f4f5f5", "#dfe1e4"
COLOURS = {
    "green": "#56a64b",
    "blue": "#3274d9",
    "purple": "#a352cc",
    "yellow": "#e0a800",
    "orange": "#e8710a",
    "red": "#e02f44",
    "dark-red": "#8f1b2b",
}
PALETTE = ["#56a64b", "#e0a800", "#3274d9", "#ef843c", "#e24d42", "#33a2b8", "#a352cc", "#705da0", "#8f8f5a", "#b0413e"]


def picture(dashboard, chosen, prometheus, start, end):
    """The SVG of what the dashboard shows of the time from `start` to `end`, with these values of its variables."""
    step = max(1, math.ceil((end - start) / POINTS))
    view = View(chosen, prometheus, math.floor(start), math.floor(end), step)
    panels = dashboard["panels"]
    width = 24 * COLUMN + GAP
    height = TOP + max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in panels) * LINE + GAP
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Inter, Helvetica, Arial, sans-serif" font-size="11" role="img">',
        f"<title>{escape(dashboard['title'])}</title>",
        f'<rect width="{width}" height="{height}" fill="{BACK}"/>',
        *_head(dashboard, view, width),
    ]
    for one in panels:
        drawn += _panel(one, view)
    return "\n".join([*drawn, "</svg>", ""])


class View:
    def __init__(self, chosen, prometheus, start, end, step):
        self.chosen, self.prometheus, self.start, self.end, self.step = chosen, prometheus, start, end, step
        self.values = {**chosen, "__rate_interval": f"{max(step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)}s"}

    def filled(self, text):
        """The text with the variables' values."""
        return re.sub(r"\$(\w+)", lambda found: self.values[found[1]], text)

    def series(self, panel):
        """Names and values of what the panel's queries answer."""
        found = []
        for target in panel["targets"]:
            expr = self.filled(target["expr"])
            if target["instant"]:
                answered = self.prometheus.now(expr, self.end)
            else:
                answered = self.prometheus.over_time(expr, self.start, self.end, self.step)
            for labels, values in answered:
                legend = target["legendFormat"]
                name = re.sub(r"{{(\w+)}}", lambda label: labels.get(label[1], ""), legend)
                found.append((name, values))
        return found


def text(x, y, words, size=11, colour=TEXT, **more):
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{attributes}>{escape(words)}</text>'


def _head(dashboard, view, width):
    yield text(GAP + 4, 24, dashboard["title"], 16, font_weight=600)
    when = [time.strftime("%H:%M", time.gmtime(at)) for at in (view.start, view.end)]
    yield text(width - GAP - 4, 24, f"{when[0]} to {when[1]} UTC", colour=FAINT, text_anchor="end")
    words = "Drawn from Prometheus' answers by scripts/pictures, not by Grafana"
    yield text(width - GAP - 4, 48, words, colour=FAINT, text_anchor="end")
    x = GAP + 4
    for variable in dashboard["templating"]["list"][1:]:
        value = view.chosen[variable["name"]].replace(".*", "All")
        label, box = variable["label"], 14 + wide(value)
        yield text(x, 48, label, colour=FAINT)
        x += wide(label) + 8
        yield f'<rect x="{x:g}" y="34" width="{box:g}" height="21" rx="2" fill="#fff" stroke="{BORDER}"/>'
        yield text(x + 7, 48, value)
        x += box + 16


def _panel(panel, view):
    place = panel["gridPos"]
    x, y = GAP + place["x"] * COLUMN, TOP + place["y"] * LINE
    width, height = place["w"] * COLUMN - GAP, place["h"] * LINE - GAP
    title = view.filled(panel["title"]).replace(".*", "All")
    if panel["type"] == "row":
        yield text(x + 4, y + 20, f"⌄ {title}", 13, font_weight=600)
        return
    yield f'<g transform="translate({x},{y})">'
    yield f'<rect width="{width}" height="{height}" rx="2" fill="#fff" stroke="{BORDER}"/>'
    yield text(10, 19, title, 12, font_weight=600)
    kinds = {"stat": _stat, "bargauge": _bars, "timeseries": _graph}
    yield from kinds[panel["type"]](panel, view.series(panel), view, width, height)
    yield "</g>"


def wide(words):
    """About how many pixels a text takes in the size of legends."""
    return sum(3.2 if one in "ijltf.,:'|() " else 9.2 if one in "mwMW%" else 6.4 for one in words)


def series_colour(panel, number, name):
    """That of the first override that matches, or of the palette."""
    for override in panel["fieldConfig"]["overrides"]:
        if re.search(override["matcher"]["options"], name):
            return COLOURS[override["properties"][0]["value"]["fixedColor"]]
    return PALETTE[number % len(PALETTE)]


def last(values):
    return next((value for value in reversed(values) if value is not None), None)


def _colour(panel, value):
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return COLOURS[reached[-1]]


def _stat(panel, series, view, width, height):
    defaults = panel["fieldConfig"]["defaults"]
    values = series[0][1] if series else []
    value = last(values)
    if value is None:
        yield text(width / 2, height / 2 + 16, defaults["noValue"], 18, FAINT, text_anchor="middle")
        return
    colour = _colour(panel, value)
    yield text(width / 2, height / 2 + 18, shown(value, defaults), 26, colour, text_anchor="middle", font_weight=600)


def _bars(panel, series, view, width, height):
    defaults = panel["fieldConfig"]["defaults"]
    if not series:
        yield text(width / 2, height / 2 + 10, defaults["noValue"], 20, FAINT, text_anchor="middle")
        return
    most = max(last(values) for _, values in series) or 1
    thick = min(34, (height - 40) / len(series) - 8)
    left, right = (140, 80) if width > 400 else (118, 68)
    for number, (name, values) in enumerate(sorted(series, key=lambda one: -last(one[1]))):
        y, value = 34 + number * (thick + 8), last(values)
        colour, room = _colour(panel, value), width - left - right
        yield text(left - 8, y + thick / 2 + 4, name, 11, text_anchor="end")
        yield f'<rect x="{left}" y="{y:g}" width="{room}" height="{thick:g}" fill="{BACK}"/>'
        yield f'<rect x="{left}" y="{y:g}" width="{room * value / most:.1f}" height="{thick:g}" fill="{colour}" fill-opacity="0.75"/>'
        yield text(width - right + 8, y + thick / 2 + 5, shown(value, defaults), 13, colour, font_weight=600)


def _area(points, floor, colour, opacity, width):
    """A line with what is below it down to `floor`; broken where there is no value."""
    run = []
    for number, point in enumerate([*points, None]):
        if point is not None:
            run.append((number, *point))
            continue
        if run:
            line = _path([(x, y) for _, x, y in run])
            if len(run) == 1:
                yield f'<circle cx="{run[0][1]:.1f}" cy="{run[0][2]:.1f}" r="1.5" fill="{colour}"/>'
            if opacity:
                back = _path([(x, floor[i]) for i, x, _ in reversed(run)]).replace("M", "L", 1)
                yield f'<path d="{line}{back}Z" fill="{colour}" fill-opacity="{opacity}"/>'
            yield f'<path d="{line}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
        run = []


def _path(points):
    """Without the points inside a level stretch."""
    kept = [
        point
        for number, point in enumerate(points)
        if number in (0, len(points) - 1) or not points[number - 1][1] == point[1] == points[number + 1][1]
    ]
    return "M" + "L".join(f"{x:.0f} {y:.1f}" for x, y in kept)


def _graph(panel, series, view, width, height):
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    series = [one for one in series if last(one[1]) is not None]
    if not series:
        yield text(width / 2, height / 2 + 10, defaults["noValue"], 16, FAINT, text_anchor="middle")
        return
    legend = list(_legend(series, panel, width))
    left, right, top, bottom = 52, width - 12, 32, height - 24 - 16 * legend[-1][1]
    stacks = custom["stacking"]["mode"] == "normal"
    layers, below = [], [0.0] * len(series[0][1])
    for _, values in series:
        upper = [None if v is None else v + (b if stacks else 0) for v, b in zip(values, below)]
        layers.append((upper, below if stacks else [0.0] * len(values)))
        if stacks:
            below = [b if u is None else u for u, b in zip(upper, below)]
    most = max(v for upper, _ in layers for v in upper if v is not None)
    steps = nice_steps(defaults.get("max", most), defaults["unit"])
    scale = max(steps[-1], defaults.get("max", most)) or 1

    def at(value):
        return bottom - value / scale * (bottom - top)

    for step in steps:
        yield f'<path d="M{left} {at(step):.1f}H{right}" stroke="{GRID}"/>'
        yield text(left - 6, at(step) + 4, shown(step, defaults), 10, FAINT, text_anchor="end")
    yield from _times(view, left, right, top, bottom)
    for number, ((name, _), (upper, lower)) in enumerate(zip(series, layers)):
        xs = [left + i * (right - left) / max(1, len(upper) - 1) for i in range(len(upper))]
        points = [None if v is None else (x, at(v)) for x, v in zip(xs, upper)]
        colour = series_colour(panel, number, name)
        yield from _area(points, [at(v) for v in lower], colour, custom["fillOpacity"] / 100, 1.3)
    if custom["thresholdsStyle"]["mode"] == "dashed":
        for step in defaults["thresholds"]["steps"][1:]:
            if step["value"] <= scale:
                y = at(step["value"])
                yield f'<path d="M{left} {y:.1f}H{right}" stroke="{COLOURS[step["color"]]}" stroke-dasharray="8 5"/>'
    for x, line, colour, name, value in legend:
        y = bottom + 18 + 16 * line
        yield f'<rect x="{x:g}" y="{y - 5}" width="12" height="3" fill="{colour}"/>'
        yield text(x + 17, y, name)
        yield text(x + 23 + wide(name), y, value, colour=FAINT)


def _times(view, left, right, top, bottom):
    minutes = max(1, round((view.end - view.start) / 60 / 6))
    at = math.ceil(view.start / 60 / minutes) * 60 * minutes
    while at <= view.end:
        x = left + (at - view.start) / (view.end - view.start) * (right - left)
        yield f'<path d="M{x:.1f} {top}V{bottom}" stroke="{GRID}"/>'
        if x < right - 8:
            yield text(x, bottom + 14, time.strftime("%H:%M", time.gmtime(at)), 10, FAINT, text_anchor="middle")
        at += 60 * minutes


def _legend(series, panel, width):
    """Place, line, colour, name and last value of each series."""
    x, line, defaults = 10, 1, panel["fieldConfig"]["defaults"]
    for number, (name, values) in enumerate(series):
        value = f"Last: {shown(last(values), defaults)}"
        needed = 40 + wide(name) + wide(value)
        if x > 10 and x + needed > width - 6:
            x, line = 10, line + 1
        yield x, line, series_colour(panel, number, name), name, value
        x += needed
