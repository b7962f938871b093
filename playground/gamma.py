"""How many tokens to ask of the proposer in the next round: the policies for gamma.

A policy sees drafts and past verdicts only, never the target's opinion of the current round, so the
output stays exact. It knows no tensors and no models: it is told numbers of tokens and milliseconds.
Sources: transformers' `heuristic` schedule (+2 / −1) and confidence threshold; a moving average as in
SGLang's adaptive mode; Leviathan et al. 2023, section 3, for the cost model.
"""

import statistics
from collections import deque

from playground.config import RANGES
from playground.theory import expected_tokens

START = int(RANGES["gamma"].default)  # asked in the first round, before any verdict
AVERAGE_WEIGHT = 0.2  # of the newest round in a moving average
EVIDENCE_KEPT = 0.9  # of the older rounds, each time a round brings new evidence on alpha
PRIOR_TESTED = 2.0  # imaginary tests, half of them accepted, so that one verdict does not decide
NUM_TIMES = 5  # newest times of each kind that count; their median shrugs off one disturbance
IDLE_ROUNDS = 16  # rounds without speculation after which it is tried again
STALE_ROUNDS = 64  # rounds after which the cost of a plain round is measured again


class GammaPolicy:
    """Constant: always asks for as many as allowed. Base of the other policies."""

    uses_confidence = False

    def reset(self) -> None:
        """Forget the last run."""

    def gamma(self, limit: int) -> int:
        """Return how many tokens to ask for in this round, 0 to `limit` (at least 1)."""
        return limit

    def stops_after(self, probability: float) -> bool:
        """Whether drafting ends behind a token that the draft itself gave this probability."""
        return False

    def observe(self, num_drafted: int, num_accepted: int, draft_ms: float, verify_ms: float) -> None:
        """Learn how a round that was asked for went, once it is over.

        Args:
            num_drafted: tokens of the longest drafted path; 0 = nothing was drafted.
            num_accepted: how many of them the target kept.
            draft_ms: time the proposer took.
            verify_ms: time from then to the verdict.
        """


class HeuristicPolicy(GammaPolicy):
    """Two more when all were accepted, one less otherwise."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        self._gamma, self._cap = START, 0

    def gamma(self, limit: int) -> int:
        self._cap = max(self._cap, limit)
        self._gamma = min(self._gamma, self._cap)
        return min(self._gamma, limit)

    def observe(self, num_drafted: int, num_accepted: int, draft_ms: float, verify_ms: float) -> None:
        if num_drafted:
            changed = self._gamma + (2 if num_accepted == num_drafted else -1)
            self._gamma = min(max(changed, 1), self._cap)


class ConfidencePolicy(GammaPolicy):
    """Asks for all, but drafting ends behind the first token the draft gave less than a threshold.

    That token stays in the draft: leaving it out because of what was drawn would change the distribution
    it was drawn from, and the output would no longer be the target's.
    """

    uses_confidence = True

    def __init__(self, threshold: float = RANGES["confidence_threshold"].default):
        self.threshold = threshold

    def stops_after(self, probability: float) -> bool:
        return probability < self.threshold


class MovingAveragePolicy(GammaPolicy):
    """One more than the moving average of the accepted length."""

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        self._average = float(START - 1)

    def gamma(self, limit: int) -> int:
        return min(round(self._average) + 1, limit)

    def observe(self, num_drafted: int, num_accepted: int, draft_ms: float, verify_ms: float) -> None:
        if num_drafted:
            self._average += AVERAGE_WEIGHT * (num_accepted - self._average)


class CostModelPolicy(GammaPolicy):
    """The gamma, 0 included, with the most expected tokens per measured millisecond.

    Alpha comes from past verdicts, newer ones weighing more; draft and verify times from past rounds by
    number of drafted tokens, interpolated. While it does not speculate it learns nothing about alpha, so
    every 16th such round tries again.
    """

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        self._tested = self._accepted = 0.0
        self._draft_ms: dict[int, deque[float]] = {}
        self._verify_ms: dict[int, deque[float]] = {}
        self._first = [0, 1, 0, 1]  # shares of the limit still to try before anything is known, last first
        self._idle = self._since_plain = 0

    @property
    def alpha(self) -> float:
        """The chance that a drafted token is accepted, estimated."""
        return (self._accepted + PRIOR_TESTED / 2) / (self._tested + PRIOR_TESTED)

    def gamma(self, limit: int) -> int:
        if self._first:
            return self._first.pop() * limit
        tokens_per_ms = self._tokens_per_ms(limit)
        best = max(range(limit + 1), key=tokens_per_ms.__getitem__)
        if best > 0 and self._since_plain >= STALE_ROUNDS:
            return 0
        if best == 0 and self._idle >= IDLE_ROUNDS:
            return max(range(1, limit + 1), key=tokens_per_ms.__getitem__)
        return best

    def observe(self, num_drafted: int, num_accepted: int, draft_ms: float, verify_ms: float) -> None:
        _note(self._verify_ms, num_drafted, verify_ms)
        self._since_plain = 0 if num_drafted == 0 else self._since_plain + 1
        self._idle = self._idle + 1 if num_drafted == 0 else 0
        if num_drafted:
            _note(self._draft_ms, num_drafted, draft_ms)
            num_tested = min(num_accepted + 1, num_drafted)
            self._tested = self._tested * EVIDENCE_KEPT + num_tested
            self._accepted = self._accepted * EVIDENCE_KEPT + num_accepted

    def _tokens_per_ms(self, limit: int) -> list[float]:
        """Expected committed tokens per millisecond for each gamma from 0 to `limit`."""
        draft_ms, verify_ms = {0: 0.0} | _medians(self._draft_ms), _medians(self._verify_ms)
        costs = (_at(gamma, draft_ms) + _at(gamma, verify_ms) for gamma in range(limit + 1))
        return [expected_tokens(self.alpha, gamma) / max(cost, 1e-6) for gamma, cost in enumerate(costs)]


POLICIES: dict[str, type[GammaPolicy]] = {
    "constant": GammaPolicy,
    "heuristic": HeuristicPolicy,
    "confidence": ConfidencePolicy,
    "moving-average": MovingAveragePolicy,
    "cost-model": CostModelPolicy,
}


def _note(times: dict[int, deque[float]], num_drafted: int, value: float) -> None:
    times.setdefault(num_drafted, deque(maxlen=NUM_TIMES)).append(value)


def _medians(times: dict[int, deque[float]]) -> dict[int, float]:
    return {num_drafted: statistics.median(values) for num_drafted, values in times.items()}


def _at(x: int, points: dict[int, float]) -> float:
    """The value at `x` on the line through `points`; beyond the last one, on the line from first to last.

    >>> _at(3, {0: 10.0, 2: 12.0, 4: 20.0}), _at(8, {0: 10.0, 4: 20.0}), _at(5, {})
    (16.0, 30.0, 0.0)
    """
    if not points:
        return 0.0
    below = [known for known in points if known <= x]
    above = [known for known in points if known >= x]
    left, right = max(below, default=min(points)), min(above, default=max(points))
    if not above:
        left = min(points)
    if left == right:
        return points[left]
    slope = (points[right] - points[left]) / (right - left)
    return points[right] + max(slope, 0.0) * (x - right) if not above else points[left] + slope * (x - left)
