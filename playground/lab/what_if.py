"""One recorded round, judged again under another temperature, top-p or seed: from its logits, with no model.

The drafted tokens stay; their q and the target's p are computed anew, the same numbers u are used or,
with another seed, fresh ones. Plain numbers, no torch, so it works on traces. The rule is that of
`verify_tree` (SpecInfer's, Leviathan's in a chain), on tokens named by the rows and one entry for all others:
exact where the residual lies on named tokens, close elsewhere.
"""

import math
import random
from dataclasses import dataclass

from playground.config import SamplingConfig
from playground.events import LogitRow, Logits, Proposed, Verified

OTHERS = -1  # stands for all tokens that a row does not name
Probs = dict[int, float]


@dataclass(frozen=True, slots=True)
class Trial:
    """One drafted token judged again. `limit` is min(1, p/q), the chance to be accepted."""

    node: int
    p: float
    q: float
    limit: float
    u: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A round judged again.

    Attributes:
        trials: the tested tokens in order.
        final_id: the target's own token, OTHERS where it is one that no row names.
        final_kind: "residual", "bonus" or "plain".
        final_probs: what the final token was drawn from.
    """

    trials: tuple[Trial, ...]
    final_id: int
    final_kind: str
    final_probs: Probs


def judge_again(
    proposed: Proposed, verified: Verified, logits: Logits, old: SamplingConfig, new: SamplingConfig
) -> Outcome:
    """Judge a round under `new`. `old` is what it ran under; the seed says whether its u are used again.

    A draft that was certain stays certain. So does every draft at temperature 0, which draws nothing.
    """
    nodes = proposed.nodes[: len(logits.draft)]
    noise = random.Random(f"{new.seed} {proposed.round}")
    fresh = [noise.random() for _ in nodes]
    drawn = {test.node: test.u for test in verified.tested} if new.seed == old.seed else {}
    children: list[list[int]] = [[] for _ in range(len(nodes) + 1)]  # by row
    for number, node in enumerate(nodes):
        children[node.parent + 1].append(number)
    trials, row = [], 0
    filters = (new.temperature, new.top_k, new.top_p)
    p = probs_of(logits.target[0], *filters)
    while children[row]:
        for number in children[row]:
            token = nodes[number].id
            q = draft_probs(logits.draft[number], token, old, new)
            trials.append(_try(number, token, p, q, drawn.get(number, fresh[number])))
            if trials[-1].accepted:
                row = number + 1
                p = probs_of(logits.target[row], *filters)
                break
            if trials[-1].p > 0 or len(q) > 1:
                p = residual_of(p, q)
        else:
            return Outcome(tuple(trials), _draw(p, noise), "residual", p)
    return Outcome(tuple(trials), _draw(p, noise), "bonus" if nodes else "plain", p)


def _try(number: int, token: int, p: Probs, q: Probs, u: float) -> Trial:
    p_x, q_x = p.get(token, 0.0), q.get(token, 0.0)
    limit = min(1.0, p_x / q_x) if q_x > 0 else float(p_x > 0)
    return Trial(number, p_x, q_x, limit, u, u * q_x < p_x)


def probs_of(row: LogitRow, temperature: float, top_k: int, top_p: float) -> Probs:
    """The distribution after temperature, top-k and top-p: each named token, and OTHERS for the rest."""
    if temperature == 0 or top_k == 1:
        return {row.ids[max(range(len(row.ids)), key=row.logits.__getitem__)]: 1.0}
    groups = [(value, 1, token) for value, token in zip(row.logits, row.ids, strict=True)]
    groups += [(value, count, OTHERS) for value, count in zip(row.rest_logits, row.rest_counts, strict=True)]
    groups.sort(key=lambda group: -group[0])
    top = groups[0][0]
    weights = [(math.exp((value - top) / max(temperature, 1e-30)), count, token) for value, count, token in groups]
    weights = _top_p(_top_k(weights, top_k), top_p)
    total = sum(weight * count for weight, count, _ in weights)
    probs: Probs = {}
    for weight, count, token in weights:
        probs[token] = probs.get(token, 0.0) + weight * count / total
    return probs


def _top_k(weights: list[tuple[float, int, int]], top_k: int) -> list[tuple[float, int, int]]:
    """The likeliest `top_k` tokens, 0 = all; a group may be cut."""
    kept, room = [], top_k
    for weight, count, token in weights:
        if top_k and room <= 0:
            break
        kept.append((weight, min(count, room) if top_k else count, token))
        room -= count
    return kept


def _top_p(weights: list[tuple[float, int, int]], top_p: float) -> list[tuple[float, int, int]]:
    """The smallest set whose mass reaches `top_p`; a group may be cut."""
    if top_p >= 1:
        return weights
    wanted = top_p * sum(weight * count for weight, count, _ in weights)
    kept, mass = [], 0.0
    for weight, count, token in weights:
        if mass >= wanted:
            break
        part = count if count == 1 or weight == 0 else min(count, math.ceil((wanted - mass) / weight))
        kept.append((weight, part, token))
        mass += weight * part
    return kept


def draft_probs(row: LogitRow, token: int, old: SamplingConfig, new: SamplingConfig) -> Probs:
    """The draft's distribution under `new`, from ln q under `old`: ∝ q^(old ÷ new temperature), then filtered."""
    certain = len(row.ids) == 1 and not row.rest_logits
    if certain or new.temperature == 0 or new.top_k == 1 or old.temperature == 0:
        return {token: 1.0}
    return probs_of(row, new.temperature / old.temperature, new.top_k, new.top_p)


def residual_of(p: Probs, q: Probs) -> Probs:
    """norm(max(0, p − q)); p itself where nothing is left."""
    left = {token: max(0.0, chance - q.get(token, 0.0)) for token, chance in p.items()}
    total = sum(left.values())
    return {token: chance / total for token, chance in left.items() if chance > 0} if total > 0 else p


def _draw(probs: Probs, noise: random.Random) -> int:
    return noise.choices(list(probs), weights=list(probs.values()))[0]
