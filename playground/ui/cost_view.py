"""The picture of cost curves and load: charts with a conclusion each, and a table. Strings only, all escaped."""

from dataclasses import asdict
from html import escape
from statistics import median

from playground.lab.cost_model import BATCHES, WIDTHS, Curve
from playground.lab.load_plan import LoadResult
from playground.lab.load_table import (
    LOAD_COLUMNS,
    Assumed,
    bend_words,
    drafted_words,
    expected_points,
    load_cells,
    load_words,
    paying_words,
)
from playground.ui.charts import SPEEDUP_LINE
from playground.ui.line_chart import DASHES, Series, line_chart
from playground.ui.notes import note
from playground.ui.text_cost import (
    BATCH_AXIS,
    BEYOND,
    CHARTS,
    CURVE_NAME,
    EMPTY,
    EXACT,
    EXPECTED,
    LEFT_OUT,
    MEASURED,
    PLAIN,
    PREDICTED,
    RATES,
    SPECULATIVE,
    TOKENS_AXIS,
)

COLORS = ("accepted", "draft", "bonus", "rejected")  # one for each precision
PLAIN_COLOR, SPECULATIVE_COLOR, PREDICTED_COLOR = "plain", "accepted", "bonus"


class CostView:
    """Collects what is measured and draws it."""

    def __init__(self, assumed: Assumed):
        self.assumed, self.gamma = assumed, assumed.gamma  # what is drafted stays, whatever is assumed later
        self.results: list[LoadResult] = []
        self._curves: dict[tuple[str, int], Curve] = {}
        self._left_out: list[str] = []

    @property
    def curves(self) -> list[Curve]:
        """The newest curve of each precision and context."""
        return list(self._curves.values())

    def __call__(self, values: list) -> str:
        """Take new values and return the picture."""
        for value in values:
            if isinstance(value, Curve):
                self._curves[value.precision, value.context] = value
            elif isinstance(value, LoadResult):
                self.results.append(value)
            else:
                self._left_out.append(LEFT_OUT.format(what=value.what, reason=value.reason))
        return self.html()

    def html(self) -> str:
        """The whole picture."""
        notes = "".join(f'<p class="note">{escape(words)}</p>' for words in self._left_out)
        if not self._curves:
            return f'<div class="spec cost"><p class="race-head">{escape(EMPTY)}</p>{notes}</div>'
        charts = f'<div class="line-charts">{self._cost()}{self._expected()}</div>'
        if self.results:
            load = self._speedup() + _throughput(self.results) + _latency(self.results)
            charts += f'<div class="line-charts">{load}</div>{_table(self.results)}'
        return f'<div class="spec cost">{charts}{notes}</div>'

    def _style(self, curve: Curve) -> dict:
        """A precision has a colour, a context a dash."""
        precisions = list(dict.fromkeys(precision for precision, _ in self._curves))
        contexts = sorted({context for _, context in self._curves})
        place = precisions.index(curve.precision) % len(COLORS)
        return {"color": COLORS[place], "dash": contexts.index(curve.context) % len(DASHES)}

    def _cost(self) -> str:
        lines = [
            Series(
                _name(curve),
                points=[(point.width, point.ms) for point in curve.points],
                ranges=[(point.low, point.high) for point in curve.points],
                ring=curve.bend,
                **self._style(curve),
            )
            for curve in self.curves
        ]
        return line_chart(CHARTS["cost"], TOKENS_AXIS, lines, " ms", [bend_words(curve) for curve in self.curves])

    def _expected(self) -> str:
        lines, verdict = [], []
        for curve in self.curves:
            points = expected_points(self.curves, curve, self.assumed)
            lines.append(Series(_name(curve), points=points, **self._style(curve)))
            verdict.append(paying_words(points, EXPECTED.format(name=_name(curve))))
        if BATCHES[-1] * (self.assumed.gamma + 1) > WIDTHS[-1]:
            verdict.append(BEYOND.format(num=WIDTHS[-1]))
        return line_chart(CHARTS["expected"], BATCH_AXIS, lines, "×", verdict, SPEEDUP_LINE)

    def _speedup(self) -> str:
        results = self.results
        measured = Series(
            MEASURED,
            SPECULATIVE_COLOR,
            [(result.batch, result.speedup) for result in results],
            [(min(result.speedups), max(result.speedups)) for result in results],
        )
        foreseen = Series(PREDICTED, PREDICTED_COLOR, [(result.batch, result.predicted) for result in results], dash=1)
        verdict = [load_words(results), drafted_words(results, self.gamma)]
        return line_chart(
            CHARTS["speedup"], BATCH_AXIS, [measured, foreseen], "×", list(filter(None, verdict)), SPEEDUP_LINE
        )


def _name(curve: Curve) -> str:
    return CURVE_NAME.format(precision=curve.precision, context=curve.context)


def _throughput(results: list[LoadResult]) -> str:
    foreseen = [median(run.throughput for run in result.plain) * result.predicted for result in results]
    return _both_ways("throughput", results, "throughput", "", foreseen)


def _latency(results: list[LoadResult]) -> str:
    foreseen = [median(run.latency_ms for run in result.plain) / result.predicted for result in results]
    return _both_ways("latency", results, "latency_ms", " ms", foreseen)


def _both_ways(chart: str, results: list[LoadResult], figure: str, unit: str, foreseen: list[float]) -> str:
    """A figure of plain and speculative runs, and what the plain one and the predicted speedup foresee."""
    batches = [result.batch for result in results]
    kinds = (("plain", PLAIN, PLAIN_COLOR, 2), ("speculative", SPECULATIVE, SPECULATIVE_COLOR, 0))
    lines, middles = [], {}
    for kind, name, color, dash in kinds:
        values = [[getattr(run, figure) for run in getattr(result, kind)] for result in results]
        middles[kind] = [median(known) for known in values]
        points = list(zip(batches, middles[kind], strict=True))
        lines.append(Series(name, color, points, [(min(known), max(known)) for known in values], dash))
    lines.append(Series(PREDICTED, PREDICTED_COLOR, list(zip(batches, foreseen, strict=True)), dash=1))
    ends = [0, len(results) - 1] if len(results) > 1 else [0]
    told = [
        RATES[chart].format(batch=batches[i], plain=middles["plain"][i], speculative=middles["speculative"][i])
        for i in ends
    ]
    return line_chart(CHARTS[chart], BATCH_AXIS, lines, unit, [f"{'; '.join(told)}."])


def _table(results: list[LoadResult]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in LOAD_COLUMNS)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in load_cells(result))}</tr>" for result in results
    )
    return (
        f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note(EXACT)}'
    )


def record(view: CostView) -> dict:
    """What was measured, as plain values for a file."""
    return {
        "curves": [asdict(curve) | {"bend": curve.bend} for curve in view.curves],
        "load": [result.to_dict() for result in view.results],
    }
