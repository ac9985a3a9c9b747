"""Values in the units of Grafana, and the steps of an axis."""

import math

SECONDS = [(86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms"), (0.000001, "µs")]


def plain(value):
    """Three digits, without zeros at the end."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    rounded = f"{value:.{min(digits, 4)}f}"
    return rounded.rstrip("0").rstrip(".") if "." in rounded else rounded


def shown(value, defaults):
    """The value in the unit of a panel, and with its decimals."""
    unit = defaults["unit"]
    if defaults.get("decimals") == 0:
        value = round(value)
    if unit == "s":
        size, name = next(((s, n) for s, n in SECONDS if abs(value) >= s), (1, "s"))
        return f"{plain(value / size)} {name}"
    if unit == "percentunit":
        return f"{plain(value * 100)} %"
    if unit.startswith("suffix:"):
        return plain(value) + unit.removeprefix("suffix:")
    if abs(value) >= 1000:
        return f"{plain(value / 1000)} K"
    return plain(value)


def nice_steps(most, unit):
    """From 0 up to the first step that is not below `most`; about four."""
    if most <= 0:
        return [0, 1]
    if unit == "s" and most > 60:
        sizes = [20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800]
        size = next((s for s in sizes if most / s <= 4), 604800)
    else:
        power = 10 ** math.floor(math.log10(most / 4))
        size = next(factor * power for factor in (1, 2, 5, 10) if most / (factor * power) <= 4.001)
        if unit == "short":
            size = max(1, size)
    return [number * size for number in range(math.ceil(most / size - 1e-9) + 1)]
