"""Lines of bytes over time as a picture: SVG that follows a page's light or dark colours."""

from __future__ import annotations

from html import escape

from ._shown import size

WIDTH, HEIGHT = 760, 300
#: Left, right, above and below the lines.
LEFT, RIGHT, ABOVE, BELOW = 84, 110, 34, 34
#: Points of a line at most.
MOST_POINTS = 1500

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333 } .grid { stroke: #ddd } polyline { fill: none; stroke-width: 1.6 }
.c0 { stroke: #1f6feb } .c1 { stroke: #8250df } .c2 { stroke: #1a7f37 } .c3 { stroke: #9a6700 } .paper { fill: #fff }
text.c0 { stroke: none; fill: #1f6feb } text.c1 { stroke: none; fill: #8250df } text.c2 { stroke: none; fill: #1a7f37 }
text.c3 { stroke: none; fill: #9a6700 }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .grid { stroke: #333 } .paper { fill: #111 } }
"""


def chart(title: str, seconds: list[float], lines: dict[str, list[int]]) -> str:
    """The picture. A line that is 0 throughout is left out."""
    shown = {name: values for name, values in lines.items() if any(values)}
    end, most = (seconds[-1] if seconds else 0.0) or 1.0, max((max(values) for values in shown.values()), default=0) or 1
    right, below = WIDTH - RIGHT, HEIGHT - BELOW
    across = [LEFT + (right - LEFT) * at / end for at in seconds]

    def up(value: float) -> float:
        return below - (below - ABOVE) * value / most

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="{LEFT}" y="20">{escape(title)}</text>',
    ]
    for quarter in range(5):
        value = most * quarter / 4
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(value) + 4:.1f}" text-anchor="end">{size(int(value))}</text>')
        at = LEFT + (right - LEFT) * quarter / 4
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{end * quarter / 4:.3g} s</text>')
    ends = sorted(((up(values[-1]), name) for name, values in shown.items()), reverse=True)
    heights: dict[str, float] = {}
    lowest = float(below)
    for height, name in ends:
        # Names that would lie upon each other move up.
        heights[name] = min(height, lowest)
        lowest = heights[name] - 15
    for number, (name, values) in enumerate(lines.items()):
        if name not in shown:
            continue
        kept = range(0, len(values), max(1, len(values) // MOST_POINTS))
        points = " ".join(f"{across[at]:.1f},{up(values[at]):.1f}" for at in [*kept, len(values) - 1])
        parts.append(f'<polyline class="c{number}" points="{points}"/>')
        parts.append(f'<text class="c{number}" x="{right + 8}" y="{heights[name] + 4:.1f}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
