"""Modified rejection sampling: which drafted tokens stay, and what the target adds.

A drafted token x is accepted when u·q(x) < p(x); after the first refusal the target's own token is
drawn from the residual norm(max(0, p − q)), or from p itself when everything was accepted. The
output is then distributed exactly as the target's. Source: Leviathan et al. 2023, Algorithm 1;
Chen et al. 2023. The letters p and q live here and in the tests only. Knows no models.
"""

from dataclasses import dataclass

import torch

from playground.sampling import draw


@dataclass(slots=True)
class Judged:
    """The verdict on one drafted token."""

    index: int  # of the token in the proposal
    p: float
    q: float
    u: float
    accepted: bool
    overlap: float  # Σ min(p, q) at its position


@dataclass(slots=True)
class Verdict:
    """What one round's verification decided.

    Attributes:
        judged: the tested tokens in order; all accepted but possibly the last.
        final_id: the target's own token.
        final_kind: "residual" after a refusal, "bonus" when all were accepted, "plain" when
            nothing was drafted.
        residual: (vocab,) normalised residual the final token came from, None for the other kinds.
    """

    judged: list[Judged]
    final_id: int
    final_kind: str
    residual: torch.Tensor | None

    @property
    def num_accepted(self) -> int:
        """Leading drafted tokens that were kept."""
        return sum(item.accepted for item in self.judged)


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
