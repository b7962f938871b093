"""Cost curves and load as tables and sentences of conclusion, for the command line and the page. No torch."""

from collections.abc import Iterable
from dataclasses import dataclass

from playground.lab.cost_model import BATCHES, BEND, Curve, PassCost, stops_paying
from playground.lab.load_plan import LoadResult

SHORT = 0.8  # of the tokens asked for: with fewer the expected speedup is out of reach


@dataclass(slots=True)
class Assumed:
    """What an expected speedup assumes."""

    alpha: float
    gamma: int
    c: float


def bend_words(curve: Curve) -> str:
    """Where free verification ends, in a sentence."""
    where = f"{curve.precision}, {curve.context:,} tokens of context"
    if curve.bend is None:
        return f"{where}: up to {curve.free} tokens, all that was measured, cost less than {BEND:g} passes over one."
    dear = next(point for point in curve.points if point.width == curve.bend)
    return (
        f"{where}: a pass over {_up_to(curve.free)} costs at most {BEND:g} passes over one; it bends at "
        f"{curve.bend} tokens ({dear.ms / curve.points[0].ms:.1f} passes over one)."
    )


def _up_to(width: int) -> str:
    return "1 token" if width == 1 else f"up to {width} tokens"


def load_words(results: list[LoadResult]) -> str:
    """At which batch size speculation stops paying, measured and predicted, in a sentence."""
    measured = paying_words([(result.batch, result.speedup) for result in results], "Measured")
    return f"{measured} {paying_words([(result.batch, result.predicted) for result in results], 'Predicted')}"


def drafted_words(results: list[LoadResult], gamma: int) -> str:
    """Where fewer tokens were drafted than asked for, that they were; else ""."""
    drafted = sum(result.drafted for result in results) / len(results)
    if drafted > SHORT * gamma:
        return ""
    return (
        f"Drafted: {drafted:.1f} tokens per sequence and round where {gamma} were asked for. The expected speedup "
        "assumes all of them; the prediction here counts those drafted."
    )


def paying_words(speedups: list[tuple[int, float]], kind: str) -> str:
    """One sentence on a list of (batch size, speedup)."""
    ends, (first, best) = stops_paying(speedups), speedups[0]
    if ends is None:
        last, worth = speedups[-1]
        only = "" if len(speedups) == 1 else f", from {best:.2f}x at B = {first}"
        return f"{kind}: speculation still pays at B = {last} ({worth:.2f}x{only})."
    if ends == first:
        return f"{kind}: speculation does not pay, not even at B = {first} ({best:.2f}x)."
    return f"{kind}: {best:.2f}x at B = {first}; speculation stops paying at B = {ends} ({dict(speedups)[ends]:.2f}x)."


def expected_points(curves: list[Curve], curve: Curve, assumed: Assumed) -> list[tuple[int, float]]:
    """(batch size, expected speedup) behind the context of one of the curves of a target."""
    cost = PassCost(item for item in curves if item.precision == curve.precision)
    chosen = assumed.alpha, assumed.gamma, assumed.c
    return [(batch, cost.speedup(*chosen, batch, curve.context)) for batch in BATCHES]


def markdown(curves: list[Curve], results: list[LoadResult], assumed: Assumed) -> str:
    """The tables, each with its conclusion."""
    parts = []
    for precision in dict.fromkeys(curve.precision for curve in curves):
        mine = [curve for curve in curves if curve.precision == precision]
        parts.append(f"One target pass in {precision}, ms: median of {mine[0].num_cycles} (fastest – slowest)\n")
        parts.append(_curve_table(mine))
        parts += [bend_words(curve) for curve in mine]
        parts.append("")
    parts += [_expected_table(curves, assumed), ""]
    if results:
        parts.append("B sequences at once; speedups are medians, each run held against the plain runs around it\n")
        parts += [_load_table(results), load_words(results), ""]
    return "\n".join(parts)


def _curve_table(curves: list[Curve]) -> str:
    widths = [point.width for point in curves[0].points]
    lines = [_line(["context", *(f"{width} token{'s' * (width > 1)}" for width in widths)])]
    lines.append(_line(["---"] * (1 + len(widths))))
    for curve in curves:
        cells = [f"{point.ms:.1f} ({point.low:.1f} – {point.high:.1f})" for point in curve.points]
        lines.append(_line([f"{curve.context:,}", *cells]))
    return "\n".join(lines) + "\n"


def _expected_table(curves: list[Curve], assumed: Assumed) -> str:
    given = f"alpha {assumed.alpha:.2f}, gamma {assumed.gamma}, c {assumed.c:.2f}"
    lines = [f"Expected speedup of B sequences at once, from the curves: {given}\n"]
    lines.append(_line(["precision, context", *(f"B = {batch}" for batch in BATCHES)]))
    lines.append(_line(["---"] * (1 + len(BATCHES))))
    verdicts = []
    for curve in curves:
        points = expected_points(curves, curve, assumed)
        name = f"{curve.precision}, {curve.context:,}"
        lines.append(_line([name, *(f"{speedup:.2f}" for _, speedup in points)]))
        verdicts.append(paying_words(points, f"Expected, {name} tokens"))
    return "\n".join([*lines, "", *verdicts])


LOAD_COLUMNS = (
    *("B", "plain, tokens/s", "speculative, tokens/s", "plain, ms per token", "speculative, ms per token"),
    *("speedup, measured", "predicted", "alpha", "c", "drafted per round", "same tokens"),
)


def load_cells(result: LoadResult) -> list[str]:
    """One batch size in the order of LOAD_COLUMNS."""
    ways = (result.plain, result.speculative)
    throughputs = [spread([run.throughput for run in runs], 1) for runs in ways]
    latencies = [spread([run.latency_ms for run in runs], 1) for runs in ways]
    alpha, c = ("—" if value is None else f"{value:.2f}" for value in (result.alpha, result.c))
    same = "—" if result.same is None else f"{result.same:.0%}"
    figures = [spread(result.speedups, 2), f"{result.predicted:.2f}", alpha, c, f"{result.drafted:.1f}", same]
    return [str(result.batch), *throughputs, *latencies, *figures]


def spread(values: Iterable[float], digits: int) -> str:
    """The median, with smallest and largest where there are several."""
    known = sorted(values)
    middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
    if len(known) == 1:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({known[0]:.{digits}f} – {known[-1]:.{digits}f})"


def _load_table(results: list[LoadResult]) -> str:
    lines = [_line(list(LOAD_COLUMNS)), _line(["---"] * len(LOAD_COLUMNS))]
    return "\n".join([*lines, *(_line(load_cells(result)) for result in results)]) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
