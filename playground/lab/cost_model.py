"""What measured pass times say: where a curve bends, what a pass over a whole batch costs, what speculation is worth.

Plain values and closed forms: needs no torch and no models. A curve is of one sequence. A pass over B sequences
is put together from two parts of it: what depends on the rows alone (the weights are read once for all of them)
and attention, which every sequence does over its own context, so B times. Attention is what a longer context
adds: the slope between the shortest and the longest measured one. Source of the speedup: Leviathan et al. 2023.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from playground.theory import expected_tokens

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
BEND = 1.5  # passes over one token that a wide pass may cost and still count as nearly free
BATCHES = (1, 2, 4, 8, 16, 32)  # for which a speedup is expected


@dataclass(frozen=True, slots=True)
class Point:
    """Milliseconds of one target pass over `width` tokens: median, fastest, slowest."""

    width: int
    ms: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Pass times of one sequence behind a context of `context` tokens, in ascending order of width."""

    precision: str
    context: int
    num_cycles: int
    points: tuple[Point, ...]

    def ms(self, rows: float) -> float:
        """Time of a pass over `rows` tokens: on the line between measured widths.

        Beyond the widest it goes on as from the third last to the last, so that one disturbed point bends nothing.
        """
        known = [(point.width, point.ms) for point in self.points]
        if rows <= known[0][0] or len(known) == 1:
            return known[0][1]
        if rows > known[-1][0]:
            (x0, y0), (x1, y1) = known[-3:][0], known[-1]
            return y1 + max(y1 - y0, 0.0) / (x1 - x0) * (rows - x1)
        right = next(index for index, (width, _) in enumerate(known) if width >= rows)
        (x0, y0), (x1, y1) = known[right - 1], known[right]
        return y0 + (y1 - y0) / (x1 - x0) * (rows - x0)

    @property
    def bend(self) -> int | None:
        """The first width from which on every measured pass costs over 1.5 passes over one token; None = never."""
        limit, found = BEND * self.points[0].ms, None
        for point in reversed(self.points):
            if point.ms <= limit:
                break
            found = point.width
        return found

    @property
    def free(self) -> int:
        """The widest measured pass before the bend."""
        return max(point.width for point in self.points if self.bend is None or point.width < self.bend)


class PassCost:
    """Milliseconds of a pass over several sequences, from the curves of one sequence in one precision."""

    def __init__(self, curves: Iterable[Curve]):
        """Raises ValueError when there is no curve."""
        found = sorted(curves, key=lambda curve: curve.context)
        if not found:
            raise ValueError("No pass has been measured yet.")
        self._short, self._long = found[0], found[-1]

    def ms(self, rows: float, num_sequences: float, context: float) -> float:
        """A pass over `rows` tokens of `num_sequences` sequences with `context` tokens each."""
        shared = self._short.ms(rows) - self._attention(rows) * self._short.context
        own = self._attention(rows / num_sequences) * context * num_sequences
        return max(shared, 0.0) + own if self._long is not self._short else self._short.ms(rows)

    def _attention(self, width: float) -> float:
        """Milliseconds that one more token of context costs a pass over `width` tokens of one sequence."""
        num_tokens = self._long.context - self._short.context
        return max(self._long.ms(width) - self._short.ms(width), 0.0) / num_tokens if num_tokens else 0.0

    def speedup(self, alpha: float, gamma: int, c: float, num_sequences: int, context: float) -> float:
        """Expected speedup at a batch size: plain passes of B rows against passes of B·(gamma + 1).

        Args:
            c: cost of one draft step of the batch in plain passes of the batch.
        """
        plain = self.ms(num_sequences, num_sequences, context)
        wide = self.ms(num_sequences * (gamma + 1), num_sequences, context)
        return expected_tokens(alpha, gamma) * plain / (gamma * c * plain + wide)


def stops_paying(speedups: Iterable[tuple[int, float]]) -> int | None:
    """The first batch size from which on every speedup is below 1; None when the largest still pays.

    >>> stops_paying([(1, 1.4), (2, 0.9), (4, 1.1), (8, 0.8), (16, 0.7)])
    8
    """
    found = None
    for batch, speedup in reversed(list(speedups)):
        if speedup >= 1:
            break
        found = batch
    return found
