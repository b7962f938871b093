"""Hidden states of one or several layers of the target as one normalised vector.

Raw hidden states differ in size by orders of magnitude from channel to channel (std about 43 before
SmolLM2's final norm), so each layer gets an RMS norm whose weight is set from samples to make
every channel of size one. The layers are then added through one matrix that starts as "the last
layer, unchanged". Source: EAGLE-3's fusion of low, middle and high features.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.RMSNorm):
    """RMS norm in the type of its input, so that mixed-precision training gets the fused kernel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


class Fusion(nn.Module):
    """forward: layer number → (…, hidden) to (…, hidden)."""

    def __init__(self, layers: Sequence[int], hidden_size: int, eps: float):
        super().__init__()
        self.layers = tuple(layers)
        self.norms = nn.ModuleList(Norm(hidden_size, eps=eps) for _ in self.layers)
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


def ridge(x: torch.Tensor, y: torch.Tensor, strength: float = 1e-3) -> torch.Tensor:
    """The matrix (out, in) that maps samples x (n, in) to y (n, out) with the least squared error.

    `strength` is relative to channels of size one.
    """
    gram = x.T @ x + strength * len(x) * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    return torch.linalg.solve(gram, x.T @ y).T
