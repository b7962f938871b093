"""The picture of a race: lanes of coloured tokens with their clocks, then the result. Strings only, all escaped.

Fed with what `lab.race` yields; works on its values by their fields, so it needs no torch.
"""

from html import escape
from statistics import median

from playground.events import Proposed, Verified
from playground.ui.text import KIND_DEFINITIONS, KIND_NAMES
from playground.ui.text_labs import (
    BASE,
    CLOCK,
    DIFFERS,
    GAP,
    NEAR_TIE,
    NO_TIE,
    RACE_COLUMNS,
    RACE_DONE,
    RACE_HEAT,
    SAME,
    SAMPLED,
)


class RaceView:
    """Collects a race and draws it."""

    def __init__(self, labels: list[str], repeats: int, precision: str, sampled: bool):
        self._labels, self._repeats = labels, repeats
        self._precision, self._sampled = precision, sampled
        self._tokens: list[list[str]] = [[] for _ in labels]
        self._counts = [0] * len(labels)
        self._clocks = [0.0] * len(labels)
        self._texts: list[list[str]] = [[] for _ in labels]  # labels of the committed tokens
        self._repeat, self._results = 0, None

    def __call__(self, values: list) -> str:
        """Take new values and return the picture."""
        for value in values:
            if isinstance(value, list):
                self._results = value
                continue
            self._repeat = value.repeat
            if value.repeat == 0:
                self._follow(value)
        return self.html()

    def _follow(self, value) -> None:
        event, lane = value.event, value.lane
        if isinstance(event, Proposed | Verified):
            self._clocks[lane] = value.clock_ms
        if isinstance(event, Verified):
            for token in event.committed:
                name = escape(KIND_NAMES[token.kind])
                text = escape(token.text) or '<span class="chip">·</span>'
                self._tokens[lane].append(f'<span class="tok {token.kind} out" title="{name}">{text}</span>')
                self._texts[lane].append(token.label)
            self._counts[lane] += len(event.committed)

    def html(self) -> str:
        """The whole picture."""
        parts = [self._lane(lane) for lane in range(len(self._labels))]
        legend = "".join(
            f'<li title="{escape(KIND_DEFINITIONS[kind])}"><span class="tok {kind}">{KIND_NAMES[kind]}</span></li>'
            for kind in ("accepted", "residual", "bonus", "plain")
        )
        head = RACE_DONE if self._results else RACE_HEAT.format(repeat=self._repeat + 1, total=self._repeats)
        return (
            f'<div class="spec race"><p class="race-head" role="status">{escape(head)}</p>'
            f'<div class="lanes">{"".join(parts)}</div><ul class="legend">{legend}</ul>{self._table()}</div>'
        )

    def _lane(self, lane: int) -> str:
        clock = self._clocks[lane]
        speed = f"{1000 * self._counts[lane] / clock:.1f}" if clock else "—"
        return (
            f'<section class="lane"><h3>{escape(self._labels[lane])}</h3>'
            f'<p class="lane-figures"><strong>{speed}</strong> tokens/s <small>{self._counts[lane]} tokens, '
            f"{escape(CLOCK.format(seconds=clock / 1000))}</small></p>"
            f'<div class="lane-text" tabindex="0">{"".join(self._tokens[lane])}</div></section>'
        )

    def _table(self) -> str:
        if not self._results:
            return ""
        rows = []
        for lane, result in enumerate(self._results):
            cells = [
                self._labels[lane],
                spread(result.tokens_per_second, "{:.1f}"),
                "1" if lane == 0 else spread(result.speedups, "{:.2f}x"),
                f"{result.acceptance_length:.2f}",
                self._verdict(lane, result.difference),
            ]
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
        head = "".join(f"<th>{escape(name)}</th>" for name in RACE_COLUMNS)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'

    def _verdict(self, lane: int, difference) -> str:
        if lane == 0:
            return BASE
        if difference is None:
            return SAME
        words = DIFFERS.format(
            index=difference.index + 1,
            mine=repr(self._label(lane, difference.index)),
            other=repr(self._label(0, difference.index)),
        )
        if self._sampled:
            return words + SAMPLED
        if difference.gap is None:
            return words
        reason = NEAR_TIE if difference.near_tie and self._precision != "float32" else NO_TIE
        return words + GAP.format(gap=difference.gap) + reason.format(precision=self._precision)

    def _label(self, lane: int, index: int) -> str:
        labels = self._texts[lane]
        return labels[index] if index < len(labels) else "the end"


def spread(values: tuple[float, ...], form: str) -> str:
    """The median and, of several, the smallest and largest."""
    middle = form.format(median(values))
    return middle if len(values) == 1 else f"{middle} ({form.format(min(values))} – {form.format(max(values))})"
