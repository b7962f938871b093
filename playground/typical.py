"""Typical acceptance: a lossy rule that keeps any guess the target finds likely enough. Off unless asked for.

A drafted token x stays when p(x) > min(ε, √ε · e^(−H(p))), H the entropy: the surer the target, the likelier a
guess must be. There is no residual: after a refusal the target's token is drawn from p. The text is then no
longer the target's; `metrics.drift` says how far off. At temperature 0 the rule is exact: p is one-hot.
Source: Cai et al. 2024 (Medusa), §2.3.1.
"""

import math

import torch

from playground.sampling import draw
from playground.verify import Judged, Rule, Verdict


def typical_rule(epsilon: float) -> Rule:
    """The rule with the threshold ε, 0 < ε < 1; δ = √ε, as its authors set it."""

    def rule(
        p_probs: torch.Tensor,
        ids: list[int],
        parents: list[int] | None,
        q_probs: torch.Tensor | None,
        rng: torch.Generator,
    ) -> Verdict:
        children: list[list[int]] = [[] for _ in range(len(ids) + 1)]  # by row
        for node, parent in enumerate(parents or range(-1, len(ids) - 1)):
            children[parent + 1].append(node)
        judged: list[Judged] = []
        row, refused = 0, False
        while children[row] and not refused:
            needed = threshold(p_probs[row], epsilon)
            for node in children[row]:
                p = float(p_probs[row, ids[node]])
                q = 1.0 if q_probs is None else float(q_probs[node, ids[node]])
                judged.append(Judged(node, p, q, needed, p > needed, p))
                if judged[-1].accepted:
                    row = node + 1
                    break
            else:
                refused = True
        kind = "plain" if not ids else "residual" if refused else "bonus"
        return Verdict(judged, draw(p_probs[row], rng), kind, p_probs[row] if refused else None)

    return rule


def threshold(p: torch.Tensor, epsilon: float) -> float:
    """What a token's probability under (vocab,) must exceed: min(ε, √ε · e^(−H)). Example: p one-hot → ε."""
    entropy = -float(torch.special.xlogy(p, p).sum())
    return min(epsilon, epsilon**0.5 * math.exp(-entropy))
