"""The acceptance process itself, simulated: rounds with a chosen alpha, and one token under right and wrong rules.

Both are vectorised and take well under a second for 200,000 rounds; each is held against its closed form.
Needs neither models nor torch. Source: Leviathan et al. 2023, sections 2 and 3.
"""

from dataclasses import dataclass

import numpy as np

from playground.theory import best_gamma, break_even_alpha, expected_tokens, predicted_speedup

NUM_ROUNDS = 200_000
MAX_TOKENS = 12
RULES = ("right", "argmax-agrees", "argmax-after-rejection", "target-after-rejection", "softmax-scored-argmax")


@dataclass(frozen=True, slots=True)
class Rounds:
    """Simulated rounds and what the closed forms say.

    Attributes:
        mean_tokens, expected: tokens per round, the target's own included.
        shares, formula: of rounds by accepted length 0 … gamma.
        speedup, predicted: over plain decoding, from the simulated and the expected tokens.
        best, break_even: gamma that pays most; alpha at which speculation breaks even, None = never.
    """

    mean_tokens: float
    expected: float
    shares: tuple[float, ...]
    formula: tuple[float, ...]
    speedup: float
    predicted: float
    best: int
    break_even: float | None


def simulate_rounds(alpha: float, gamma: int, c: float, width: float, seed: int = 0) -> Rounds:
    """Draw 200,000 rounds in which each drafted token is accepted with chance alpha.

    Args:
        c: cost of a draft step. width: extra cost of each further token in the target's pass; both in plain steps.
    """
    expected = expected_tokens(alpha, gamma)
    accepted = np.random.default_rng(seed).random((NUM_ROUNDS, max(gamma, 1))) < alpha
    lengths = np.cumprod(accepted[:, :gamma], axis=1).sum(axis=1) if gamma else np.zeros(NUM_ROUNDS, dtype=int)
    counts = np.bincount(lengths, minlength=gamma + 1) / NUM_ROUNDS
    mean, cost = float(lengths.mean()) + 1, gamma * c + 1 + width * gamma
    return Rounds(
        mean_tokens=mean,
        expected=expected,
        shares=tuple(counts.tolist()),
        formula=tuple(length_shares(alpha, gamma)),
        speedup=mean / cost,
        predicted=predicted_speedup(alpha, gamma, c, 1 + width * gamma),
        best=best_gamma(alpha, c, lambda tokens: 1 + width * (tokens - 1)),
        break_even=break_even_alpha(gamma, c, 1 + width * gamma),
    )


def length_shares(alpha: float, gamma: int) -> list[float]:
    """Chance of 0 … gamma accepted tokens: α^k (1 − α), and α^γ for all of them."""
    return [alpha**k * (1 - alpha) for k in range(gamma)] + [alpha**gamma]


@dataclass(frozen=True, slots=True)
class TokenWorld:
    """One drafted token under every rule.

    Attributes:
        p, q: the two distributions, normalised. accept: min(1, p/q). residual: norm(max(0, p − q)).
        overlap: Σ min(p, q), the chance of acceptance.
        exact, sampled: rule → distribution of the token that comes out.
        variation: rule → total variation between `sampled` and p.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]
    accept: tuple[float, ...]
    residual: tuple[float, ...]
    overlap: float
    exact: dict[str, tuple[float, ...]]
    sampled: dict[str, tuple[float, ...]]
    variation: dict[str, float]


def parse_weights(text: str) -> np.ndarray:
    """Weights such as "5, 3, 2" or "0.5 0.3 0.2" as a distribution.

    Raises:
        ValueError: not 2 to 12 numbers of which none is negative and one is positive.
    """
    parts = text.replace(",", " ").replace(";", " ").split()
    try:
        found = np.array([float(part) for part in parts])
    except ValueError as error:
        raise ValueError(f"Give numbers such as 0.5, 0.3, 0.2; {text.strip()[:40]!r} holds something else.") from error
    if not 2 <= len(found) <= MAX_TOKENS or not np.isfinite(found).all() or (found < 0).any() or found.sum() <= 0:
        raise ValueError(f"Give 2 to {MAX_TOKENS} numbers of which none is negative and one is positive.")
    return found / found.sum()


def simulate_token(p: np.ndarray, q: np.ndarray, seed: int = 0) -> TokenWorld:
    """Draw 200,000 tokens under every rule. Raises ValueError when p and q differ in length."""
    if len(p) != len(q):
        raise ValueError(f"p has {len(p)} tokens and q has {len(q)}: they must be the same tokens.")
    sampled = {rule: _sample(rule, p, q, np.random.default_rng(seed)) for rule in RULES}
    return TokenWorld(
        p=tuple(p.tolist()),
        q=tuple(q.tolist()),
        accept=tuple(_accept(p, q).tolist()),
        residual=tuple(_residual(p, q).tolist()),
        overlap=float(np.minimum(p, q).sum()),
        exact={rule: tuple(exact_output(rule, p, q).tolist()) for rule in RULES},
        sampled={rule: tuple(row.tolist()) for rule, row in sampled.items()},
        variation={rule: float(np.abs(row - p).sum() / 2) for rule, row in sampled.items()},
    )


def exact_output(rule: str, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The exact distribution of the token that comes out of a rule."""
    kept, likeliest = np.minimum(p, q), np.eye(len(p))[p.argmax()]
    refused = 1 - kept.sum()
    if rule == "right":
        return kept + refused * _residual(p, q)
    if rule == "argmax-agrees":
        return likeliest
    if rule == "argmax-after-rejection":
        return kept + refused * likeliest
    if rule == "target-after-rejection":
        return kept + refused * p
    guess = q.argmax()
    chance = _accept(p, q)[guess]
    return chance * np.eye(len(p))[guess] + (1 - chance) * _residual(p, q)


def _sample(rule: str, p: np.ndarray, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shares of the tokens that come out, drawn step by step as the rule says."""
    count, size = NUM_ROUNDS, len(p)
    drafted = np.full(count, q.argmax()) if rule == "softmax-scored-argmax" else rng.choice(size, count, p=q)
    if rule == "argmax-agrees":
        out = np.where(drafted == p.argmax(), drafted, p.argmax())
    else:
        accepted = rng.random(count) < _accept(p, q)[drafted]
        if rule == "argmax-after-rejection":
            other = np.full(count, p.argmax())
        else:
            other = rng.choice(size, count, p=p if rule == "target-after-rejection" else _residual(p, q))
        out = np.where(accepted, drafted, other)
    return np.bincount(out, minlength=size) / count


def _accept(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.minimum(1.0, np.divide(p, q, out=np.ones_like(p), where=q > 0))


def _residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    left = np.maximum(0.0, p - q)
    return left / left.sum() if left.sum() > 0 else p
