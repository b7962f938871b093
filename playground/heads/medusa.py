"""Medusa: several heads on one hidden state of the target, each guessing one depth further.

Head i (1 …) reads the state of the last token the target has seen and guesses the token i places
after the one the target itself predicts there. Every head is a linear map and a residual block over
the fused state, starts as the best linear guess, and shares the target's output rows (Medusa-1: the target is
frozen). All heads run in one product per layer. Source: Cai et al. 2024, arXiv 2401.10774.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from playground.heads.base import Head
from playground.heads.fusion import Fusion, ridge, unit_scale


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
        self.turn = nn.Linear(hidden_size, num_heads * hidden_size, bias=False)
        self.rise = nn.Linear(hidden_size, num_heads * inner_size)
        self.fall = nn.Parameter(torch.zeros(num_heads, inner_size, hidden_size))  # zero: each head starts as `turn`
        self.scale = nn.Parameter(torch.ones(num_heads, hidden_size))  # the target's final norm, one per head
        self.eps = eps

    @torch.no_grad()
    def start_from(self, final_norm: torch.Tensor, hidden: Mapping[int, torch.Tensor], final: torch.Tensor) -> None:
        """Start each head as the best linear guess of the target's last state its depth further on.

        Args:
            final_norm: (hidden,) weight of the target's final norm.
            hidden: samples (n, hidden) of successive tokens, per layer in `feature_layers`.
            final: (n, hidden) of the same tokens before the final norm.
        """
        self.fusion.calibrate(hidden)
        scale = unit_scale(final.float(), self.eps)
        wanted = F.rms_norm(final.float(), final.shape[-1:], scale, self.eps)  # channels of size one
        x = self.fusion({layer: states.float() for layer, states in hidden.items()})
        maps = [ridge(x[:-depth], wanted[depth:]) for depth in range(1, self.num_heads + 1)]
        self.turn.weight.copy_(torch.cat(maps))
        self.scale.copy_((final_norm.float() / scale).expand_as(self.scale))

    def forward(self, hidden: Mapping[int, torch.Tensor]) -> torch.Tensor:
        x = self.fusion(hidden)
        inner = F.silu(self.rise(x)).unflatten(-1, (self.num_heads, self.inner_size))  # (…, K, inner)
        flat = inner.flatten(0, -3).transpose(0, 1)  # (K, n, inner)
        moved = torch.bmm(flat, self.fall.to(flat.dtype)).transpose(0, 1).reshape(*inner.shape[:-1], -1)
        return (self.turn(x).unflatten(-1, moved.shape[-2:]) + moved) * self.scale  # (…, K, hidden)
