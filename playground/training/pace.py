"""When training ends; means of what training reports, how fast it goes, and how long it still takes."""

from collections import defaultdict
from dataclasses import dataclass
from time import perf_counter

from playground.training.losses import Score

EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """When training ends: after so much time, or so many steps; None = no such limit."""

    minutes: float | None = None
    steps: int | None = None
    checkpoint_minutes: float = 5.0

    def fraction(self, elapsed_s: float, step: int) -> float:
        """How much of the run is over, 0..1."""
        by_time = elapsed_s / (60 * self.minutes) if self.minutes else 0.0
        by_steps = step / self.steps if self.steps else 0.0
        return min(1.0, max(by_time, by_steps))


@dataclass(slots=True)
class Progress:
    """One line's worth of news: means since the last one."""

    step: int
    fraction: float
    loss: float
    overlaps: dict[str, float]  # label of the guess → overlap
    tokens_per_s: float
    left_s: float


class Pace:
    """Collects scores; every few seconds there is news."""

    def __init__(self, limits: Limits, elapsed_s: float, step: int):
        self._limits, self._started = limits, (elapsed_s, limits.fraction(elapsed_s, step))
        self._clear()

    def _clear(self) -> None:
        self._since, self._tokens, self._count, self._loss = perf_counter(), 0, 0, 0.0
        self._overlaps: dict[str, float] = defaultdict(float)

    def note(self, scores: dict[str, Score], num_tokens: int) -> None:
        """Count one step."""
        self._tokens, self._count = self._tokens + num_tokens, self._count + 1
        self._loss += sum(float(score.loss.detach()) for score in scores.values()) / len(scores)
        for label, score in scores.items():
            self._overlaps[label] += score.overlap

    def news(self, elapsed_s: float, step: int) -> Progress | None:
        """Means since the last news, or None when that was a moment ago."""
        fraction = self._limits.fraction(elapsed_s, step)
        spent = perf_counter() - self._since
        if spent < EVERY_S and fraction < 1:
            return None
        before_s, before = self._started
        left_s = (elapsed_s - before_s) * (1 - fraction) / max(1e-6, fraction - before)
        overlaps = {label: total / self._count for label, total in self._overlaps.items()}
        news = Progress(step, fraction, self._loss / self._count, overlaps, self._tokens / spent, left_s)
        self._clear()
        return news
