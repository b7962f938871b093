"""Modified rejection sampling: which drafted tokens stay, and what the target adds.

A drafted token x is accepted when u·q(x) < p(x); after the first refusal the target's own token is
drawn from the residual norm(max(0, p − q)), or from p itself when everything was accepted. In a
tree the residual is what the next sibling is held against. The output is then distributed exactly as
the target's. Source: Leviathan et al. 2023, Algorithm 1; Chen et al. 2023; Miao et al. 2024
(SpecInfer), multi-step speculative sampling. The letters p and q live here and in the tests only.
Knows no models.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from playground.sampling import draw


@dataclass(slots=True)
class Judged:
    """The verdict on one drafted token."""

    index: int  # of the token in the proposal
    p: float  # what u·q was held against: the target's or, after a sibling's refusal, the residual's
    q: float
    u: float
    accepted: bool
    overlap: float  # Σ min(p, q): the chance that it is accepted, given the refusals before it


@dataclass(slots=True)
class Verdict:
    """What one round's verification decided.

    Attributes:
        judged: the tested tokens in order. In a chain all are accepted but possibly the last; in a tree
            refused siblings stand before the accepted one.
        final_id: the target's own token.
        final_kind: "residual" after a refusal (of all siblings, in a tree), "bonus" when the draft was
            accepted to its end, "plain" when nothing was drafted.
        residual: (vocab,) normalised residual the final token came from, None for the other kinds.
    """

    judged: list[Judged]
    final_id: int
    final_kind: str
    residual: torch.Tensor | None

    @property
    def num_accepted(self) -> int:
        """Drafted tokens that were kept."""
        return sum(item.accepted for item in self.judged)

    @property
    def path(self) -> list[int]:
        """Indices of the kept tokens in the proposal, in order: one path from the root of a tree."""
        return [item.index for item in self.judged if item.accepted]

    def until(self, num_committed: int) -> list[Judged]:
        """The tested tokens up to the last committed one, where the run ended inside the draft; else all."""
        path = self.path
        if num_committed > len(path):
            return self.judged
        return self.judged[: [item.index for item in self.judged].index(path[num_committed - 1]) + 1]


# Target rows, drafted ids, their parents, the draft's rows, the run's generator → what is kept: see `verify_tree`.
Rule = Callable[[torch.Tensor, list[int], list[int] | None, torch.Tensor | None, torch.Generator], Verdict]


def residual_of(p: torch.Tensor, q: torch.Tensor | None, token: int) -> torch.Tensor:
    """The normalised residual norm(max(0, p − q)), (vocab,); p itself where its mass is 0.

    Args:
        p: (vocab,) the target's distribution.
        q: (vocab,) the draft's, None = all mass on `token`.
    """
    left = p.clone()
    if q is None:
        left[token] = (left[token] - 1.0).clamp(min=0.0)
    else:
        left = (left - q).clamp_(min=0.0)
    mass = left.sum()
    return left / mass if float(mass) > 0 else p


def verify_chain(p_probs: torch.Tensor, ids: list[int], q_probs: torch.Tensor | None, rng: torch.Generator) -> Verdict:
    """Judge a chain of drafted tokens against the target's distributions.

    Args:
        p_probs: (n + 1, vocab) float32: the target's distribution at each drafted position and one more.
        ids: the n drafted tokens; n may be 0.
        q_probs: (n, vocab) the distribution each was really drawn from; None = deterministic (one-hot).
        rng: the run's generator; n + 1 uniform numbers are drawn.

    Source: Leviathan et al. 2023, Algorithm 1.
    """
    count = len(ids)
    judged = _judge(p_probs, ids, q_probs, rng) if count else []
    num_accepted = sum(item.accepted for item in judged)
    if num_accepted == count:
        return Verdict(judged, draw(p_probs[count], rng), "bonus" if count else "plain", None)
    refused = num_accepted
    q_row = None if q_probs is None else q_probs[refused]
    residual = residual_of(p_probs[refused], q_row, ids[refused])
    return Verdict(judged, draw(residual, rng), "residual", residual)


def _judge(p_probs: torch.Tensor, ids: list[int], q_probs: torch.Tensor | None, rng: torch.Generator) -> list[Judged]:
    """Test the drafted tokens in order up to and including the first refusal; one transfer to the host."""
    count = len(ids)
    rows = torch.arange(count, device=p_probs.device)
    tokens = torch.tensor(ids, device=p_probs.device)
    p = p_probs[rows, tokens]  # (n,)
    u = torch.rand(count, generator=rng, device=p_probs.device)
    if q_probs is None:
        q, overlap = torch.ones_like(p), p
    else:
        q, overlap = q_probs[rows, tokens], torch.minimum(p_probs[:count], q_probs).sum(-1)
    accepted = (u * q < p).to(p.dtype)
    judged = []
    for index, (p_i, q_i, u_i, ok, shared) in enumerate(torch.stack((p, q, u, accepted, overlap), dim=1).tolist()):
        judged.append(Judged(index, p_i, q_i, u_i, bool(ok), shared))
        if not ok:
            break
    return judged


def verify_tree(
    p_probs: torch.Tensor,
    ids: list[int],
    parents: list[int] | None,
    q_probs: torch.Tensor | None,
    rng: torch.Generator,
) -> Verdict:
    """Judge a tree of drafted tokens: siblings in order, the residual updated after each refusal.

    Whatever the shape, the output is the target's: each sibling is one more chance taken from what the
    refusals before it left. Example: p = (.5, .5) and two deterministic siblings 0 and 1: 0 is kept with
    chance .5; else the residual is (0, 1) and 1 is kept for certain.

    Args:
        p_probs: (n + 1, vocab): row 0 the target's distribution after the context, row i + 1 after token i.
        ids: the n drafted tokens.
        parents: index of the token each one follows, -1 for the context; a parent comes first. None = a chain.
        q_probs: (n, vocab) the distribution each was really drawn from, given its earlier siblings; None =
            deterministic (one-hot).
        rng: the run's generator; n + 1 uniform numbers are drawn, as for a chain.

    Source: Miao et al. 2024 (SpecInfer), Algorithm 2.
    """
    if parents is None or parents == list(range(-1, len(ids) - 1)):
        return verify_chain(p_probs, ids, q_probs, rng)
    return _walk(p_probs, ids, parents, q_probs, rng)


def _walk(
    p_probs: torch.Tensor, ids: list[int], parents: list[int], q_probs: torch.Tensor | None, rng: torch.Generator
) -> Verdict:
    """Go down from the root as long as a child is accepted. `row` is the row of `p_probs` gone to."""
    children: list[list[int]] = [[] for _ in range(len(ids) + 1)]  # by row
    for node, parent in enumerate(parents):
        children[parent + 1].append(node)
    u = torch.rand(len(ids), generator=rng, device=p_probs.device).tolist()
    judged: list[Judged] = []
    row, p = 0, p_probs[0]
    while children[row]:
        for node in children[row]:
            q = None if q_probs is None else q_probs[node]
            judged.append(_judge_node(node, p, ids[node], q, u[node]))
            if judged[-1].accepted:
                row, p = node + 1, p_probs[node + 1]
                break
            if q is not None or judged[-1].p > 0:  # a certain guess of no mass takes none away
                p = residual_of(p, q, ids[node])
        else:
            return Verdict(judged, draw(p, rng), "residual", p)
    return Verdict(judged, draw(p, rng), "bonus", None)


def _judge_node(node: int, p: torch.Tensor, token: int, q: torch.Tensor | None, u: float) -> Judged:
    if q is None:
        p_x = float(p[token])
        return Judged(node, p_x, 1.0, u, u < p_x, p_x)
    p_x, q_x, overlap = torch.stack((p[token], q[token], torch.minimum(p, q).sum())).tolist()
    return Judged(node, p_x, q_x, u, u * q_x < p_x, overlap)
