"""How far a drafter's distribution is from the target's: soft cross-entropy, and the overlap it buys.

The target is known by its K likeliest tokens. Tokens outside the draft vocabulary cannot be guessed:
their probability is lost, and the loss leaves them out. Forward KL and soft cross-entropy differ by
the target's entropy only, a constant. Source: DistillSpec (Zhou et al. 2024), Leviathan 2023 (overlap).
"""

from dataclasses import dataclass

import torch


@dataclass(slots=True)
class Score:
    """Over n positions.

    Attributes:
        loss: weighted mean cross-entropy in nats, a scalar with a gradient.
        overlap: weighted mean of Σ min(p, q) over the target's likeliest tokens.
        top1: weighted share of positions where both name the same likeliest token.
    """

    loss: torch.Tensor
    overlap: float
    top1: float


class SoftCrossEntropy:
    """−Σ p·log q with q a softmax over the candidates' output rows."""

    def __init__(self, ids: torch.Tensor, rows: torch.Tensor, num_ids: int, greedy_share: float = 0.0):
        """Args:
        ids: (D,) token ids that can be guessed. rows: (D, hidden) their output rows, frozen.
        num_ids: ids the tokenizer knows.
        greedy_share: part of the target's mass moved to its likeliest token (0 = its distribution).
        """
        self.ids, self.rows, self.greedy_share = ids, rows, greedy_share
        self._index = torch.full((num_ids,), -1, dtype=torch.long, device=ids.device)
        self._index[ids] = torch.arange(len(ids), device=ids.device)

    def __call__(
        self,
        states: torch.Tensor,
        top_ids: torch.Tensor,
        top_probs: torch.Tensor,
        weight: torch.Tensor,
        extra: tuple[torch.Tensor, float] | None = None,
    ) -> Score:
        """Score n states.

        Args:
            states: (n, hidden), normed for the output rows.
            top_ids, top_probs: (n, K) of the target. weight: (n,).
            extra: output rows (m, hidden) of tokens drawn from those left out of `ids`, and how many
                tokens each stands for; they enter the softmax's sum only.
        """
        logits = torch.nn.functional.linear(states, self.rows.to(states.dtype)).float()  # (n, D)
        log_sum = logits.logsumexp(-1, keepdim=True)
        if extra is not None:
            rest = torch.nn.functional.linear(states, extra[0].to(states.dtype)).float().logsumexp(-1, keepdim=True)
            log_sum = torch.logaddexp(log_sum, rest + torch.log(torch.tensor(extra[1], device=rest.device)))
        index = self._index[top_ids]
        known = index >= 0
        log_q = logits.gather(1, index.clamp(min=0)) - log_sum  # (n, K)
        p = top_probs * known
        wanted = p if not self.greedy_share else (1 - self.greedy_share) * p
        if self.greedy_share:
            wanted[:, 0] += self.greedy_share * known[:, 0]
        total = weight.sum().clamp(min=1e-6)
        loss = -((wanted * log_q).sum(-1) * weight).sum() / total
        with torch.no_grad():
            overlap = (torch.minimum(p, log_q.exp()) * known).sum(-1)
            same = (logits.argmax(-1) == index[:, 0]).float()
            return Score(loss, float((overlap * weight).sum() / total), float((same * weight).sum() / total))
