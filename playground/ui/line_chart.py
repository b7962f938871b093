"""A line chart as SVG: few points, doubling along x, drawn on the server. Strings only, all escaped.

For labs that measure while they are watched: it costs the server a millisecond and the browser no script, which
on a small machine is time the engine keeps. Colours are names of the page's colour variables, as in `charts`, so
that a change of theme needs no redraw. Knows nothing of what is drawn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 236
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 40
DASHES = ("", "6 4", "2 3", "9 3 2 3")
STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Series:
    """One line.

    Attributes:
        color: a colour variable of the page, without dashes in front.
        points: (x, y) in ascending order of x.
        ranges: (low, high) of each point, or none.
        dash: index into DASHES, so that colour is not all that tells lines apart.
        ring: the x of a point to ring, or None.
    """

    name: str
    color: str
    points: Sequence[tuple[float, float]]
    ranges: Sequence[tuple[float, float]] = ()
    dash: int = 0
    ring: float | None = None


def line_chart(
    words: tuple[str, str], axis: str, lines: Sequence[Series], unit: str, verdict: Sequence[str], reference: float = 0
) -> str:
    """A card: title, caption, legend, drawing, and what to conclude.

    Args:
        words: title and caption.
        axis: what x is.
        unit: behind a value of y that is pointed at; one of a single letter also on the axis.
        verdict: sentences below the drawing.
        reference: a y to draw a dashed line at, 0 = none.
    """
    title, caption = words
    legend = "".join(f"<li>{_sample(line)}{escape(line.name)}</li>" for line in lines)
    label = escape(f"{title}: {caption}. {' '.join(verdict)}", quote=True)
    drawing = _drawing(axis, lines, unit, reference)
    below = "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict)
    return (
        f'<figure class="line-chart"><figcaption><b>{escape(title)}</b> <span>{escape(caption)}</span></figcaption>'
        f'<ul class="legend">{legend}</ul><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{drawing}</svg>{below}</figure>"
    )


def _sample(line: Series) -> str:
    dash = f' stroke-dasharray="{DASHES[line.dash]}"' if DASHES[line.dash] else ""
    return (
        f'<svg viewBox="0 0 26 10" aria-hidden="true"><path d="M1 5H25" style="stroke: var(--{line.color})"{dash} />'
        f'<circle cx="13" cy="5" r="3" style="fill: var(--{line.color})" /></svg>'
    )


def ticks_up_to(top: float) -> list[float]:
    """Round values from 0 to the first one not below `top`, four to six of them.

    >>> ticks_up_to(9), ticks_up_to(130)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [0.0, 50.0, 100.0, 150.0])
    """
    if not top > 0:
        return [0.0, 1.0]
    power = 10 ** math.floor(math.log10(top / 4))
    step = next(step * power for step in STEPS if step * power * 5 >= top)
    return [number * step for number in range(math.ceil(top / step - 1e-9) + 1)]


def _drawing(axis: str, lines: Sequence[Series], unit: str, reference: float) -> str:
    xs = sorted({x for line in lines for x, _ in line.points})
    highs = [high for line in lines for _, high in (line.ranges or [(y, y) for _, y in line.points])]
    ticks = ticks_up_to(max([*highs, reference * 1.2], default=1.0))
    span = math.log2(xs[-1] / xs[0]) or 1.0

    def at(x: float) -> float:
        return round(LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * math.log2(x / xs[0]) / span, 1)

    def up(y: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y / ticks[-1], 1)

    parts = [_horizontal(up(tick), f"{tick:g}{unit if len(unit) == 1 else ''}") for tick in ticks]
    parts += [f'<text x="{at(x)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:g}</text>' for x in xs]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 5}" text-anchor="middle">{escape(axis)}</text>')
    if reference:
        parts.append(f'<path class="reference" d="M{LEFT} {up(reference)}H{WIDTH - RIGHT}" />')
    parts += [_line(line, at, up, unit) for line in lines]
    return "".join(parts)


def _horizontal(y: float, label: str) -> str:
    return (
        f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}" />'
        f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{escape(label)}</text>'
    )


def _line(line: Series, at, up, unit: str) -> str:
    """A path through the points, a bar for each range, marks that tell their value when pointed at."""
    path = "M" + "L".join(f"{at(x)} {up(y)}" for x, y in line.points)
    dash = f' stroke-dasharray="{DASHES[line.dash]}"' if DASHES[line.dash] else ""
    parts = [f'<path class="line" d="{path}"{dash} />']
    for (x, _), (low, high) in zip(line.points, line.ranges, strict=False):
        parts.append(f'<path class="range" d="M{at(x)} {up(low)}V{up(high)}" />')
    for index, (x, y) in enumerate(line.points):
        spread = f" ({line.ranges[index][0]:.3g} – {line.ranges[index][1]:.3g})" if line.ranges else ""
        told = escape(f"{line.name}, {x:g}: {y:.3g}{unit}{spread}")
        ring = f'<circle class="ring" cx="{at(x)}" cy="{up(y)}" r="7.5" />' if x == line.ring else ""
        parts.append(
            f'{ring}<g><circle class="mark" cx="{at(x)}" cy="{up(y)}" r="3.2" />'
            f'<circle class="hit" cx="{at(x)}" cy="{up(y)}" r="10"><title>{told}</title></circle></g>'
        )
    return f'<g style="--line-color: var(--{line.color})">{"".join(parts)}</g>'
