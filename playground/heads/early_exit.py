"""Adapters that turn the hidden state after k layers into a state for the target's output head.

The first k layers of the target draft; what they computed is reused when it verifies. Their
state is not made for the output head, so an adapter per exit depth (residual SwiGLU blocks, no
attention, hence no cache of its own) translates it. Sources: Draft & Verify (Zhang et al. 2024),
LayerSkip (Elhoushi et al. 2024), Kangaroo (Liu et al. 2024).
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from playground.heads.base import Head
from playground.heads.fusion import Norm, ridge, unit_scale


class Block(nn.Module):
    """x + down(silu(gate(norm(x))) · up(norm(x))), zero at the start."""

    def __init__(self, hidden_size: int, inner_size: int, eps: float):
        super().__init__()
        self.norm = Norm(hidden_size, eps=eps)
        self.rise = nn.Linear(hidden_size, 2 * inner_size, bias=False)
        self.fall = nn.Linear(inner_size, hidden_size, bias=False)
        nn.init.zeros_(self.fall.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.rise(self.norm(x)).chunk(2, dim=-1)
        return x + self.fall(F.silu(gate) * up)


class ExitAdapter(nn.Module):
    """forward: (…, hidden) after k layers → normed state (…, hidden) for the target's output head."""

    def __init__(self, hidden_size: int, inner_size: int, num_blocks: int, eps: float):
        super().__init__()
        self.norm_in = Norm(hidden_size, eps=eps)
        self.turn = nn.Linear(hidden_size, hidden_size, bias=False)
        self.blocks = nn.ModuleList(Block(hidden_size, inner_size, eps) for _ in range(num_blocks))
        self.eps, self.scale = eps, nn.Parameter(torch.ones(hidden_size))  # → the state the output rows expect

    @torch.no_grad()
    def start_from(self, final_norm: torch.Tensor, samples: torch.Tensor, final: torch.Tensor) -> None:
        """Start as the best linear guess of the state before the final norm.

        Args:
            final_norm: (hidden,) weight of the target's final norm.
            samples: (n, hidden) after k layers. final: (n, hidden) of the same tokens after all layers.
        """
        self.norm_in.weight.copy_(unit_scale(samples.float(), self.norm_in.eps))
        scale = unit_scale(final.float(), self.eps)
        wanted = F.rms_norm(final.float(), final.shape[-1:], scale, self.eps)  # channels of size one
        self.turn.weight.copy_(ridge(self.norm_in(samples.float()), wanted))
        self.scale.copy_(final_norm.float() / scale)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        x = self.turn(self.norm_in(hidden.to(self.norm_in.weight.dtype)))
        for block in self.blocks:
            x = block(x)
        return x * self.scale


class ExitAdapters(Head):
    """One adapter per exit depth; `adapters[str(k)]` is the one after k layers."""

    kind = "early-exit"

    def __init__(
        self,
        hidden_size: int,
        num_draft_ids: int,
        exit_layers: Sequence[int],
        inner_size: int,
        num_blocks: int = 2,
        eps: float = 1e-5,
    ):
        layers = [int(layer) for layer in exit_layers]
        super().__init__(
            hidden_size, num_draft_ids, exit_layers=layers, inner_size=inner_size, num_blocks=num_blocks, eps=eps
        )
        self.exit_layers = tuple(layers)
        self.adapters = nn.ModuleDict(
            {str(layer): ExitAdapter(hidden_size, inner_size, num_blocks, eps) for layer in layers}
        )

    def forward(self, hidden: torch.Tensor, num_layers: int) -> torch.Tensor:
        """States (…, hidden) after `num_layers` layers → normed states (…, hidden)."""
        return self.adapters[str(num_layers)](hidden)
