"""The labs of the double: whatever job is asked for, it plays the batches a test has laid out, at a set pace."""

import time
from collections.abc import Callable, Iterator

from playground.lab.cost_model import WIDTHS, Curve, Point
from playground.lab.load_plan import LoadResult, LoadRun


class LabsDouble:
    """Plays `lab_script`; the job itself needs models and is not run."""

    lab_script: tuple = ()
    lab_pause_s: float = 0.15

    def lab(self, job: Callable, wait_s: float = 1 / 12, stop: object = None) -> Iterator[list]:
        """Yield the batches of the script."""
        for batch in self.lab_script:
            time.sleep(self.lab_pause_s)
            yield list(batch)


def curve_of(context: int, num_cycles: int) -> Curve:
    """A curve that bends at 16 tokens, later behind a short context."""
    times = [(width, 12.0 + width * (0.4 + context / 2000)) for width in WIDTHS]
    return Curve("bfloat16", context, num_cycles, tuple(Point(width, ms, ms * 0.95, ms * 1.1) for width, ms in times))


def result_of(batch: int) -> LoadResult:
    """A batch of which each sequence gains less than one alone does."""
    sizes = (batch, 80 * batch)

    def run(rounds: int, depth: int, round_ms: float) -> LoadRun:
        depths = (depth,) * (rounds * batch)
        tested = (120 * batch, 60 * batch) if depth else (0, 0)
        rows = rounds * batch * (depth + 1)
        return LoadRun(*sizes, rounds, rows, 150.0, depths, *tested, depth * 2.0, rounds * round_ms, rounds * 0.5)

    plain = tuple(run(80, 0, 14.0 + batch) for _ in range(3))
    speculative = tuple(run(40, 3, 18.0 + 3.4 * batch + extra) for extra in (0, 2))
    return LoadResult(batch, plain, speculative, 1.7 - 0.06 * batch, 1.0)
