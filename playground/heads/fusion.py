"""Hidden states of one or several layers of the target as one normalised vector.

Raw hidden states differ in size by orders of magnitude from channel to channel (std about 43 before
SmolLM2's final norm), so each layer gets an RMS norm whose weight is set from samples to make
every channel of size one. The layers are then added through one matrix that starts as "the last
layer, unchanged". Source: EAGLE-3's fusion of low, middle and high features.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import nn


class Fusion(nn.Module):
    """forward: layer number → (…, hidden) to (…, hidden)."""

    def __init__(self, layers: Sequence[int], hidden_size: int, eps: float):
        super().__init__()
        self.layers = tuple(layers)
        self.norms = nn.ModuleList(nn.RMSNorm(hidden_size, eps=eps) for _ in self.layers)
        self.mix = nn.Linear(len(self.layers) * hidden_size, hidden_size, bias=False) if len(layers) > 1 else None
        if self.mix is not None:
            with torch.no_grad():
                self.mix.weight.zero_()
                self.mix.weight[:, -hidden_size:].fill_diagonal_(1)

    @torch.no_grad()
    def calibrate(self, hidden: Mapping[int, torch.Tensor]) -> None:
        """Set each norm's weight from samples (n, hidden) so that its output channels have RMS one."""
        for layer, norm in zip(self.layers, self.norms, strict=True):
            norm.weight.copy_(unit_scale(hidden[layer].float(), norm.eps))

    def forward(self, hidden: Mapping[int, torch.Tensor]) -> torch.Tensor:
        parts = [norm(hidden[layer].to(norm.weight.dtype)) for layer, norm in zip(self.layers, self.norms, strict=True)]
        return parts[0] if self.mix is None else self.mix(torch.cat(parts, dim=-1))


def unit_scale(samples: torch.Tensor, eps: float) -> torch.Tensor:
    """The RMS-norm weight (hidden,) that gives `samples` (n, hidden) channels of RMS one after the norm."""
    normed = samples * (samples.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return normed.pow(2).mean(0).clamp(min=1e-8).rsqrt()
