"""The picture of cost curves and load: charts with a conclusion each, and a table. Strings only, all escaped."""

from dataclasses import asdict, dataclass
from html import escape

from playground.lab.cost_model import BATCHES, Curve, PassCost
from playground.lab.load_plan import LoadResult
from playground.lab.load_table import LOAD_COLUMNS, bend_words, drafted_words, load_cells, load_words, paying_words
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
    WAITS,
)

COLORS = ("accepted", "draft", "bonus", "rejected")  # one for each precision
PLAIN_COLOR, SPECULATIVE_COLOR, PREDICTED_COLOR = "plain", "accepted", "bonus"


@dataclass(slots=True)
class Assumed:
    """What the expected speedup assumes: of the sliders, not measured."""

    alpha: float
    gamma: int
    c: float


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
        given, lines, verdict, rows = self.assumed, [], [], BATCHES[-1] * (self.assumed.gamma + 1)
        for curve in self.curves:
            cost = PassCost(item for item in self.curves if item.precision == curve.precision)
            chosen = given.alpha, given.gamma, given.c
            points = [(batch, cost.speedup(*chosen, batch, curve.context)) for batch in BATCHES]
            lines.append(Series(_name(curve), points=points, **self._style(curve)))
            verdict.append(paying_words(points, EXPECTED.format(name=_name(curve))))
        if rows > cost.num_measured:
            verdict.append(BEYOND.format(num=cost.num_measured))
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
    return _both_ways("throughput", results, "throughput", "", RATES)


def _latency(results: list[LoadResult]) -> str:
    return _both_ways("latency", results, "latency_ms", " ms", WAITS)


def _both_ways(chart: str, results: list[LoadResult], figure: str, unit: str, words: str) -> str:
    lines, middles = [], {}
    for kind, name, color, dash in (
        ("plain", PLAIN, PLAIN_COLOR, 1),
        ("speculative", SPECULATIVE, SPECULATIVE_COLOR, 0),
    ):
        values = [sorted(getattr(run, figure) for run in getattr(result, kind)) for result in results]
        middles[kind] = [(known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2 for known in values]
        points = [(result.batch, middle) for result, middle in zip(results, middles[kind], strict=True)]
        lines.append(Series(name, color, points, [(known[0], known[-1]) for known in values], dash))
    last = {"batch": results[-1].batch, "plain": middles["plain"][-1], "speculative": middles["speculative"][-1]}
    last |= {"alone": middles["plain"][0], "alone_speculative": middles["speculative"][0]}
    verdict = [words.format(**last)] if results[0].batch == 1 and len(results) > 1 else []
    return line_chart(CHARTS[chart], BATCH_AXIS, lines, unit, verdict)


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
