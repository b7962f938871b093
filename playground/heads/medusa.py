"""Medusa: several heads on one hidden state of the target, each guessing one depth further.

Head i (1 …) reads the state of the last token the target has seen and the embedding of the newest one,
which is known but not yet seen, and guesses the token i places after it. Every head is a linear map and a
residual block over both, starts as the best linear guess, and shares the target's output rows (Medusa-1: the
target is frozen). All heads run in one product per layer. Source: Cai et al. 2024, arXiv 2401.10774, whose
heads read the state alone; the newest token as in Hydra (Ankner et al. 2024, arXiv 2402.05109), without its chain.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import nn

from playground.heads.base import Head
from playground.heads.fusion import Fusion, Norm, ridge, unit_scale


class MedusaHeads(Head):
    """forward: layer → (…, hidden) of one token each, and the next token's embedding (…, hidden), to normed
    states (…, num_heads, hidden)."""

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
        self.norm_embed = Norm(hidden_size, eps=eps)
        self.turn = nn.Linear(2 * hidden_size, num_heads * hidden_size, bias=False)
        self.rise = nn.Linear(2 * hidden_size, num_heads * inner_size)
        self.fall = nn.Parameter(torch.zeros(num_heads, inner_size, hidden_size))  # zero: each head starts as `turn`
        self.scale = nn.Parameter(torch.ones(num_heads, hidden_size))  # the target's final norm, one per head
        self.eps = eps

    @torch.no_grad()
    def start_from(
        self, final_norm: torch.Tensor, hidden: Mapping[int, torch.Tensor], final: torch.Tensor, embeds: torch.Tensor
    ) -> None:
        """Start each head as the best linear guess of the target's last state its depth further on.

        Args:
            final_norm: (hidden,) weight of the target's final norm.
            hidden: samples (n, hidden) of successive tokens, per layer in `feature_layers`.
            final: (n, hidden) of the same tokens before the final norm.
            embeds: (n, hidden) embedding of the token after each.
        """
        self.fusion.calibrate(hidden)
        self.norm_embed.weight.copy_(unit_scale(embeds.float(), self.eps))
        scale = unit_scale(final.float(), self.eps)
        wanted = F.rms_norm(final.float(), final.shape[-1:], scale, self.eps)  # channels of size one
        x = self._joined({layer: states.float() for layer, states in hidden.items()}, embeds.float())
        maps = [ridge(x[:-depth], wanted[depth:]) for depth in range(1, self.num_heads + 1)]
        self.turn.weight.copy_(torch.cat(maps))
        self.scale.copy_((final_norm.float() / scale).expand_as(self.scale))

    def _joined(self, hidden: Mapping[int, torch.Tensor], embeds: torch.Tensor) -> torch.Tensor:
        return torch.cat((self.fusion(hidden), self.norm_embed(embeds.to(self.norm_embed.weight.dtype))), dim=-1)

    def forward(self, hidden: Mapping[int, torch.Tensor], embeds: torch.Tensor) -> torch.Tensor:
        x = self._joined(hidden, embeds)
        inner = F.silu(self.rise(x)).unflatten(-1, (self.num_heads, self.inner_size))  # (…, K, inner)
        flat = inner.flatten(0, -3).transpose(0, 1)  # (K, n, inner)
        moved = torch.bmm(flat, self.fall.to(flat.dtype)).transpose(0, 1).reshape(*inner.shape[:-1], -1)
        return (self.turn(x).unflatten(-1, moved.shape[-2:]) + moved) * self.scale  # (…, K, hidden)
