"""Results of a sweep summed up: medians with bootstrap intervals, a table, CSV, and what to choose.

Intervals are of the median over prompts, 95 %, from 1,000 resamplings. Source: Efron 1979.
"""

import csv
import io
import random
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from playground.lab.compare import Result

NUM_RESAMPLED = 1000
COLUMNS = ("alpha", "acceptance_length", "c", "width_cost", "predicted", "speedup")


@dataclass(frozen=True, slots=True)
class Interval:
    """A median with its 95 % interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f} – {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Summary:
    """One arm at one temperature. `by_task` holds medians of the speedup; `figures` one Interval per column."""

    arm: str
    temperature: float
    num_prompts: int
    figures: dict[str, Interval | None]
    mean_length: float
    mean_speedup: float
    by_task: dict[str, dict[str, float]]
    same: float | None


def interval(values: Iterable[float], seed: int = 0) -> Interval | None:
    """The median of some values with its bootstrap interval; None without values."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(known, k=len(known))) for _ in range(NUM_RESAMPLED))
    low, high = medians[int(0.025 * NUM_RESAMPLED)], medians[int(0.975 * NUM_RESAMPLED) - 1]
    return Interval(statistics.median(known), low, high)


def summaries(results: list[Result]) -> list[Summary]:
    """Sum up by arm and temperature, in the order of first appearance. Means are over tasks, each task its mean."""
    found = []
    for temperature in dict.fromkeys(result.temperature for result in results):
        for name in sorted({result.arm for result in results}, key=lambda name: _first(results, name)):
            mine = [result for result in results if (result.arm, result.temperature) == (name, temperature)]
            if mine:
                found.append(_summary(name, temperature, mine))
    return found


def _first(results: list[Result], name: str) -> int:
    return next(index for index, result in enumerate(results) if result.arm == name)


def _summary(name: str, temperature: float, mine: list[Result]) -> Summary:
    tasks = {}
    for task in dict.fromkeys(result.task for result in mine):
        here = [result for result in mine if result.task == task]
        lengths, speedups = [r.acceptance_length for r in here], [r.speedup for r in here]
        tasks[task] = {
            "speedup": statistics.median(speedups),
            "mean_speedup": statistics.fmean(speedups),
            "acceptance_length": statistics.fmean(lengths),
        }
    same = [result.same for result in mine if result.same is not None]
    return Summary(
        arm=name,
        temperature=temperature,
        num_prompts=len(mine),
        figures={column: interval(getattr(result, column) for result in mine) for column in COLUMNS},
        mean_length=statistics.fmean(task["acceptance_length"] for task in tasks.values()),
        mean_speedup=statistics.fmean(task["mean_speedup"] for task in tasks.values()),
        by_task=tasks,
        same=statistics.fmean(same) if same else None,
    )


def recommendation(found: list[Summary]) -> str:
    """What to choose, with the evidence; not to speculate where no interval lies above 1. One line a temperature."""
    lines = []
    for temperature in dict.fromkeys(item.temperature for item in found):
        usable = [item for item in found if item.temperature == temperature and "(ceiling)" not in item.arm]
        best = max(usable, key=lambda item: item.figures["speedup"].median)
        speedup = best.figures["speedup"]
        where = f"temperature {temperature:g}"
        if speedup.low > 1:
            lines.append(f"{where}: {best.arm}, speedup {speedup} over {best.num_prompts} prompts, measured.")
        else:
            lines.append(f"{where}: do not speculate. The best, {best.arm}, measured {speedup}: not surely above 1.")
    return "\n".join(lines)


def markdown(found: list[Summary]) -> str:
    """One table per temperature, and the speedup by task."""
    parts = []
    for temperature in dict.fromkeys(item.temperature for item in found):
        rows = [item for item in found if item.temperature == temperature]
        parts.append(f"Temperature {temperature:g}, medians over {rows[0].num_prompts} prompts (95 % interval)\n")
        parts.append(_table(rows) + "\n")
        parts.append("Speedup by task, medians\n")
        parts.append(_task_table(rows) + "\n")
    return "\n".join(parts)


def _table(rows: list[Summary]) -> str:
    head = ["proposer", "alpha", "acceptance length", "c", "pass ÷ plain step", "predicted", "measured speedup"]
    head += ["mean length", "mean speedup", "same text"]
    lines = [_line(head), _line(["---"] * len(head))]
    for item in rows:
        cells = [item.arm, *("—" if item.figures[c] is None else str(item.figures[c]) for c in COLUMNS)]
        same = "" if item.same is None else f"{item.same:.0%}"
        lines.append(_line([*cells, f"{item.mean_length:.2f}", f"{item.mean_speedup:.2f}", same]))
    return "\n".join(lines)


def _task_table(rows: list[Summary]) -> str:
    tasks = list(dict.fromkeys(task for item in rows for task in item.by_task))
    lines = [_line(["proposer", *tasks]), _line(["---"] * (1 + len(tasks)))]
    for item in rows:
        lines.append(
            _line([item.arm, *(f"{item.by_task[t]['speedup']:.2f}" if t in item.by_task else "" for t in tasks)])
        )
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def to_csv(results: list[Result]) -> str:
    """One row per arm and prompt."""
    columns: dict[str, Callable[[Result], object]] = {
        name: lambda result, name=name: getattr(result, name)
        for name in ("arm", "task", "temperature", "prompt", "committed", "rounds", "drafted", "tested", "accepted")
    }
    columns |= {name: lambda result, name=name: getattr(result, name) for name in COLUMNS}
    columns["same"] = lambda result: result.same
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for result in results:
        writer.writerow([read(result) for read in columns.values()])
    return out.getvalue()
