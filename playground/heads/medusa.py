"""Medusa: several heads on one hidden state of the target, each guessing one depth further.

Head i (1 …) reads the state of the last token the target has seen and guesses the token i places
after the one the target itself predicts there. Every head is a residual block over the fused state,
starts as "the target's own guess", and shares the target's output rows (Medusa-1: the target is
frozen). All heads run in one product per layer. Source: Cai et al. 2024, arXiv 2401.10774.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from playground.heads.base import Head
from playground.heads.fusion import Fusion


class MedusaHeads(Head):
    """forward: layer → (…, hidden) of one token each, to normed states (…, num_heads, hidden)."""

    kind = "medusa"

    def __init__(
        self,
        hidden_size: int,
        num_draft_ids: int,
        num_heads: int,
        inner_size: int,
        feature_layers: Sequence[int],
        eps: float = 1e-5,
    ):
        layers = list(feature_layers)
        super().__init__(
            hidden_size, num_draft_ids, num_heads=num_heads, inner_size=inner_size, feature_layers=layers, eps=eps
        )
        self.num_heads, self.inner_size, self.feature_layers = num_heads, inner_size, tuple(layers)
        self.fusion = Fusion(layers, hidden_size, eps)
        self.rise = nn.Linear(hidden_size, num_heads * inner_size)
        self.fall = nn.Parameter(torch.zeros(num_heads, inner_size, hidden_size))  # zero: each head starts as identity
        self.scale = nn.Parameter(torch.ones(num_heads, hidden_size))  # the target's final norm, one per head
        self.eps = eps

    @torch.no_grad()
    def start_from(self, final_norm: torch.Tensor, hidden: Mapping[int, torch.Tensor]) -> None:
        """Start as the target's own output: scales so that state → fused → scale equals the final norm.

        Args:
            final_norm: (hidden,) weight of the target's final norm.
            hidden: samples (n, hidden) per layer in `feature_layers`, the last of them before the final norm.
        """
        self.fusion.calibrate(hidden)
        self.scale.copy_((final_norm.float() / self.fusion.norms[-1].weight).expand_as(self.scale))

    def forward(self, hidden: Mapping[int, torch.Tensor]) -> torch.Tensor:
        x = self.fusion(hidden)
        inner = F.silu(self.rise(x)).unflatten(-1, (self.num_heads, self.inner_size))  # (…, K, inner)
        flat = inner.flatten(0, -3).transpose(0, 1)  # (K, n, inner)
        moved = torch.bmm(flat, self.fall.to(flat.dtype)).transpose(0, 1).reshape(*inner.shape[:-1], -1)
        return (x.unsqueeze(-2) + moved) * self.scale  # (…, K, hidden)
