"""Closed forms of speculative decoding, assuming each token is accepted independently with chance alpha.

Real acceptance is not independent, so a prediction is labelled as one. Rates are 0..1, costs are in
units of one plain target step. Needs no torch. Source: Leviathan et al. 2023, section 3.
"""

from collections.abc import Callable

MAX_GAMMA = 16


def expected_tokens(alpha: float, gamma: int) -> float:
    """Expected tokens per round, the target's own included: (1 − α^(γ+1)) / (1 − α).

    >>> [round(expected_tokens(alpha, 4), 2) for alpha in (0, 0.8, 1)]
    [1.0, 3.36, 5.0]

    Raises:
        ValueError: alpha outside 0..1 or a negative gamma.
    """
    if not 0 <= alpha <= 1 or gamma < 0:
        raise ValueError(f"alpha must be from 0 to 1 and gamma at least 0, not {alpha} and {gamma}.")
    return float(gamma + 1) if alpha == 1 else (1 - alpha ** (gamma + 1)) / (1 - alpha)


def predicted_speedup(alpha: float, gamma: int, c: float, width_cost: float = 1.0) -> float:
    """Expected speedup over plain decoding: E / (γ·c + w).

    Args:
        alpha: chance that a drafted token is accepted.
        gamma: tokens drafted per round.
        c: cost of one draft step in target steps.
        width_cost: cost w of a target pass over γ + 1 tokens, in passes over one token.
    """
    return expected_tokens(alpha, gamma) / (gamma * c + width_cost)


def best_gamma(alpha: float, c: float, width_cost: Callable[[int], float] = lambda width: 1.0) -> int:
    """The gamma from 0 (do not speculate) to 16 with the highest predicted speedup."""
    return max(range(MAX_GAMMA + 1), key=lambda gamma: predicted_speedup(alpha, gamma, c, width_cost(gamma + 1)))


def break_even_alpha(gamma: int, c: float, width_cost: float = 1.0) -> float | None:
    """The alpha at which speculating costs exactly what it saves, to 1e-6; None when none does."""
    if predicted_speedup(1.0, gamma, c, width_cost) < 1:
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        if predicted_speedup(middle, gamma, c, width_cost) < 1:
            low = middle
        else:
            high = middle
    return high
