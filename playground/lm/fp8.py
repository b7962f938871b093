"""Matrix products in 8-bit floating point (e4m3), for GPUs of compute capability 8.9 and later.

Weights have one scale per output row; each row of the activations gets its own on the fly, so an
outlier spoils its own row only. The product is `torch._scaled_mm`, which a CPU only emulates: good
for testing, not for speed. Source: Micikevicius et al. 2022, FP8 formats for deep learning.
"""

import torch

FP8 = torch.float8_e4m3fn
FP8_MAX = torch.finfo(FP8).max  # 448
MULTIPLE = 16  # the kernel's rule for both sides of a weight


class Fp8Linear:
    """y = x·Wᵀ + b with W and x rounded to e4m3 row by row; x and y in bfloat16."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        codes, scale = to_fp8(weight)
        self.weight, self.scale = codes.t(), scale.t()  # (in, out) column-major as the kernel wants it, (1, out)
        self.bias = bias

    @staticmethod
    def fits(weight: torch.Tensor) -> bool:
        """Whether the kernel takes a weight (out, in) of this shape."""
        return all(size % MULTIPLE == 0 for size in weight.shape)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        codes, scale = to_fp8(x)
        y = torch._scaled_mm(codes, self.weight, scale_a=scale, scale_b=self.scale, out_dtype=torch.bfloat16)
        return y if self.bias is None else y + self.bias


def to_fp8(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a matrix (n, m) to e4m3; return codes (n, m) and float32 scales (n, 1) with rows ≈ codes · scales."""
    rows = rows.float()
    scale = rows.abs().amax(-1, keepdim=True).clamp(min=1e-12) / FP8_MAX
    return (rows / scale).to(FP8), scale
