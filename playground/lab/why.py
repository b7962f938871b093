"""Why a run had the speed it had: the formula with its own numbers, where the time went, what to change.

Made from recorded events alone, so a trace explains itself too. Predictions assume independent acceptance
and are called predictions. Needs no torch. Source: Leviathan et al. 2023, section 3.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from playground.events import Event, Proposed
from playground.metrics import RunMetrics
from playground.theory import best_gamma, break_even_alpha, expected_tokens, predicted_speedup

CHEAP = 0.02  # plain steps: below it drafting counts as free


@dataclass(frozen=True, slots=True)
class Why:
    """What explains a run's speed. Costs are in plain steps, rates 0..1.

    Attributes:
        gamma: mean drafted depth of the rounds that drafted. share_drafted: of all rounds.
        alpha, acceptance_length, draft_efficiency, speedup: measured.
        c: cost of one draft step. width: cost of one verifying pass. other: everything else of a round.
        expected: tokens per round that alpha and gamma predict; predicted: the speedup they do.
        even: alpha at which this gamma breaks even, None = never. best: gamma that pays most here.
        best_speedup: predicted at `best`.
        split: share of the time by part: draft, plain pass, width (what the wider pass costs more), sampling,
            rollback, python (the rest).
        verdict: key of the sentence that names what costs most.
    """

    gamma: float
    share_drafted: float
    alpha: float
    acceptance_length: float
    draft_efficiency: float
    speedup: float
    c: float
    width: float
    other: float
    expected: float
    predicted: float
    even: float | None
    best: int
    best_speedup: float
    split: dict[str, float]
    verdict: str


def explain(events: Iterable[Event]) -> Why | None:
    """Explain a run; None when it drafted nothing that was tested, or has no baseline."""
    metrics, depths = RunMetrics(), []
    for event in events:
        metrics.update(event)
        if isinstance(event, Proposed):
            depths.append(_depth(event))
    drafted = [depth for depth in depths[: metrics.num_rounds] if depth]
    if not drafted or metrics.alpha is None or metrics.baseline is None or not metrics.decode_ms:
        return None
    step_ms, rounds = metrics.baseline.step_ms, metrics.num_rounds
    gamma = sum(drafted) / len(drafted)
    c = metrics.draft_ms / sum(drafted) / step_ms
    width, other = metrics.verify_ms / rounds / step_ms, metrics.other_ms / rounds / step_ms
    share = len(drafted) / rounds
    expected = 1 + share * (sum(expected_tokens(metrics.alpha, depth) for depth in drafted) / len(drafted) - 1)
    whole = max(1, round(gamma))
    slope = max(0.0, width - 1) / whole

    def cost(tokens: int) -> float:
        return 1 + slope * (tokens - 1)

    best = best_gamma(metrics.alpha, c, cost)
    cost_of_round = metrics.decode_ms / rounds / step_ms
    split = {
        "draft": metrics.draft_ms / rounds / step_ms / cost_of_round,
        "plain": min(width, 1.0) / cost_of_round,
        "width": max(0.0, width - 1) / cost_of_round,
        "sampling": metrics.sampling_ms / metrics.decode_ms,
        "rollback": metrics.rollback_ms / metrics.decode_ms,
        "python": (metrics.other_ms - metrics.sampling_ms - metrics.rollback_ms) / metrics.decode_ms,
    }
    return Why(
        gamma=gamma,
        share_drafted=share,
        alpha=metrics.alpha,
        acceptance_length=metrics.acceptance_length,
        draft_efficiency=metrics.draft_efficiency,
        speedup=metrics.speedup,
        c=c,
        width=width,
        other=other,
        expected=expected,
        predicted=expected / (share * gamma * c + width),
        even=break_even_alpha(whole, c, cost(whole + 1)),
        best=best,
        best_speedup=predicted_speedup(metrics.alpha, best, c, cost(best + 1)),
        split=split,
        verdict=_verdict(metrics.alpha, share, c, gamma, split, best, whole),
    )


def _depth(event: Proposed) -> int:
    depths: list[int] = []
    for node in event.nodes:
        depths.append(1 if node.parent < 0 else depths[node.parent] + 1)
    return max(depths, default=0)


def _verdict(alpha: float, share: float, c: float, gamma: float, split: dict, best: int, whole: int) -> str:
    """What to change first: the largest cost beside the one pass that any round needs."""
    if best == 0:
        return "stop"
    if share < 0.5:
        return "seldom"
    extra = {name: split[name] for name in ("draft", "width")}
    extra["other"] = split["sampling"] + split["rollback"] + split["python"]
    largest = max(extra, key=extra.get)
    if extra[largest] > 0.2:
        return largest
    if alpha < 0.5:
        return "alpha"
    return "more" if best > whole else "good"
