"""Bar plots as SVG, drawn from figures."""

from html import escape

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 760, 230, 110, 22, 8, 40
COLOURS = {"sexton": "#1f6feb", "bare": "#8b949e"}
OTHERS = "#c9a227"


def bars(title, rows):
    """A bar for each row (peer, label, median, least, most, text), the spread as a line over its end."""
    height = TOP + len(rows) * (BAR + GAP) + 12
    most = max((row[4] for row in rows if row[4] is not None), default=0) or 1
    scale = (WIDTH - LEFT - RIGHT) / most
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        drawn += _bar(TOP + number * (BAR + GAP), scale, *row)
    return "\n".join([*drawn, "</svg>", ""])


def _bar(y, scale, peer, label, median, least, most, text):
    middle = y + BAR / 2
    yield f'<text x="{LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(label)}</text>'
    end = LEFT
    if median is not None:
        fill = COLOURS.get(peer, OTHERS)
        yield f'<rect x="{LEFT}" y="{y}" width="{max(1, median * scale):.1f}" height="{BAR}" fill="{fill}"/>'
        ends = (LEFT + least * scale, LEFT + most * scale)
        yield f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{middle}" y2="{middle}" stroke="#24292f"/>'
        end = ends[1]
    yield f'<text x="{end + 6:.1f}" y="{middle + 4:.1f}">{escape(text)}</text>'
