"""The parts of a Grafana dashboard, as Grafana 11 keeps them in JSON."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
# The heights of a row's title, of a single value and of a graph, in Grafana's rows.
HEIGHTS = {"row": 1, "stat": 3, "bargauge": 8, "timeseries": 8}


def steps(*bounds, first="green"):
    """Thresholds: the first colour, then each one from its value on."""
    first = {"color": first, "value": None}
    return {"mode": "absolute", "steps": [first, *({"color": color, "value": value} for value, color in bounds)]}


def targets(queries, instant=False):
    """The queries A, B, … from pairs of an expression and the text of the legend."""
    return [
        {
            "refId": chr(ord("A") + number),
            "datasource": DATASOURCE,
            "expr": expr,
            "legendFormat": legend,
            "instant": instant,
            "range": not instant,
        }
        for number, (expr, legend) in enumerate(queries)
    ]


def panel(kind, width, title, description, defaults, options, queries, instant=False):
    """A panel without number and place."""
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "gridPos": {"h": HEIGHTS[kind], "w": width},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": targets(queries, instant),
    }


def row(title):
    """A title over the panels that follow."""
    return {"type": "row", "title": title, "collapsed": False, "gridPos": {"h": 1, "w": COLUMNS}, "panels": []}


REDUCE = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def stat(title, description, unit, expr, *bounds, first="green", empty="no data", width=4):
    """The value of one series in large type, coloured by its thresholds.

    Of now, and not the last one of the time shown: that would stay for hours after the last scheduler died.
    """
    defaults = {
        "unit": unit,
        "noValue": empty,
        "color": {"mode": "thresholds"},
        "thresholds": steps(*bounds, first=first),
    }
    options = {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "center",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": REDUCE,
        "showPercentChange": False,
        "textMode": "value",
        "wideLayout": True,
    }
    return panel("stat", width, title, description, defaults, options, [(expr, "")], instant=True)


def bars(title, description, unit, query, *bounds, empty="none", width=12):
    """The value of each series now as a bar, coloured by its thresholds."""
    defaults = {
        "unit": unit,
        "noValue": empty,
        "min": 0,
        "color": {"mode": "thresholds"},
        "thresholds": steps(*bounds),
    }
    options = {
        "displayMode": "basic",
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
        "maxVizHeight": 300,
        "minVizHeight": 16,
        "minVizWidth": 8,
        "namePlacement": "auto",
        "orientation": "horizontal",
        "reduceOptions": REDUCE,
        "showUnfilled": True,
        "sizing": "auto",
        "valueMode": "color",
    }
    return panel("bargauge", width, title, description, defaults, options, [query], instant=True)


# Colours of what means the same in every graph.
COLOURS = {
    "green": ["succeeded", "claimed", "running", "resolved", "low"],
    "blue": ["pending", "queued"],
    "purple": ["waiting", "locked", "muted", "held"],
    "orange": ["retrying", "skipped", "interrupted", "snoozed", "open", "medium"],
    "red": ["error", "missed", "reopened", "high"],
    "dark-red": ["lost", "permanent", "out_of_memory"],
    "yellow": ["timeout", "signal", "cancelled"],
}
LABELS = ["{{outcome}}", "{{state}}", "{{disposition}}", "{{severity}}"]


def overrides(queries):
    """The colours of series by name, where their names are values with a meaning."""
    if not any(legend in LABELS for _, legend in queries):
        return []
    return [
        {
            "matcher": {"id": "byRegexp", "options": f"^({'|'.join(names)})$"},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
        }
        for color, names in COLOURS.items()
    ]


def graph(title, description, unit, *queries, stacked=False, most=None, limit=None, width=8):
    """Lines over time, or areas upon one another; `limit` is drawn as a dashed line."""
    custom = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 40 if stacked else 8,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "off" if limit is None else "dashed"},
    }
    defaults = {
        "unit": unit,
        "min": 0,
        **({} if most is None else {"max": most}),
        # Things that are counted are whole, though `increase` estimates.
        **({"decimals": 0} if unit == "short" else {}),
        "noValue": "no data",
        "color": {"mode": "palette-classic"},
        "thresholds": steps(*([] if limit is None else [(limit, "red")])),
        "custom": custom,
    }
    options = {
        "legend": {"calcs": ["lastNotNull"], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    made = panel("timeseries", width, title, description, defaults, options, queries)
    made["fieldConfig"]["overrides"] = overrides(queries)
    return made


def query_variable(name, label, query, description, several=True):
    """A variable whose values Prometheus answers."""
    all_values = {"includeAll": True, "multi": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}
    return {
        "type": "query",
        "name": name,
        "label": label,
        "description": description,
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 1,
        **(all_values if several else {"includeAll": False, "multi": False}),
    }


def dashboard(uid, title, description, variables, panels):
    """A dashboard whose panels are placed from left to right, and below where the line is full."""
    x = y = height = 0
    for number, one in enumerate(panels, start=1):
        place = one["gridPos"]
        if x + place["w"] > COLUMNS or one["type"] == "row":
            x, y, height = 0, y + height, 0
        place |= {"x": x, "y": y}
        x, height = x + place["w"], max(height, place["h"])
        one["id"] = number
    source = {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus", "refresh": 1}
    link = {
        "title": "Sexton's dashboards",
        "type": "dashboards",
        "tags": ["sexton"],
        "icon": "external link",
        "tooltip": "",
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": False,
        "keepTime": True,
    }
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["sexton"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [link],
        "templating": {"list": [source, *variables]},
        "panels": panels,
    }
