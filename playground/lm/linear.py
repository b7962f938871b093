"""Matrix products for one decoder: plain, packed for oneDNN, int8 and int4.

A kernel is a callable (n, in) → (n, out). `make_linear` packs the weight once; the fastest kernel
that the device and the shape allow is chosen, always with the same mathematics. Knows no models.

Why packed: PyTorch hands oneDNN a plain row-major weight, which it re-reads in a poor order for a
handful of rows; weights reordered once (what the inductor compiler does when freezing) take about
half the time on a CPU with AVX-512. int8 and int4 are weight-only, symmetric per row and
asymmetric per group of 32, by PyTorch's own CPU kernels.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F

Linear = Callable[[torch.Tensor], torch.Tensor]

PACK_ROWS_HINT = 8  # rows oneDNN lays the packed weight out for: best over 1..16 where measured
INT4_GROUP = 32


class DenseLinear:
    """y = x·Wᵀ + b with the weight as it is."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight, self.bias = weight, bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight, self.bias)


class PackedLinear:
    """The same product on a weight reordered for oneDNN. CPU, float32 or bfloat16."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), PACK_ROWS_HINT)
        self.bias = bias

    @staticmethod
    def available(dtype: torch.dtype) -> bool:
        """Whether this build and processor have the kernel for `dtype`."""
        ops = torch.ops.mkldnn
        if not torch.backends.mkldnn.is_available() or not hasattr(ops, "_reorder_linear_weight"):
            return False
        if dtype == torch.bfloat16:
            return bool(ops._is_mkldnn_bf16_supported())
        return dtype == torch.float32

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


class Int8Linear:
    """Weight-only int8, one scale per output row; x in bfloat16."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        weight = weight.float()
        scale = weight.abs().amax(dim=1).clamp(min=1e-8) / 127  # (out,)
        self.weight = (weight / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        self.scale = scale.to(torch.bfloat16)
        self.bias = None if bias is None else bias.to(torch.bfloat16)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = torch._weight_int8pack_mm(x, self.weight, self.scale)
        return y if self.bias is None else y + self.bias


class Int4Linear:
    """Weight-only int4 in groups of 32 along the input, scale and minimum per group; x in bfloat16."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        codes, scale, minimum = quantize_int4(weight)
        self.weight = torch._convert_weight_to_int4pack_for_cpu(codes, 1)
        # The kernel computes (code − 8)·scale + zero, with scale and zero as (groups, out, 2).
        zero = minimum + 8 * scale
        self.scales_and_zeros = torch.stack((scale, zero), dim=-1).transpose(0, 1).contiguous().to(torch.bfloat16)
        self.bias = None if bias is None else bias.to(torch.bfloat16)

    @staticmethod
    def fits(weight: torch.Tensor) -> bool:
        """Whether the kernel takes this shape."""
        return weight.shape[1] % INT4_GROUP == 0 and weight.shape[0] % 16 == 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = torch._weight_int4pack_mm_for_cpu(x, self.weight, INT4_GROUP, self.scales_and_zeros)
        return y if self.bias is None else y + self.bias


def quantize_int4(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Round a weight to 16 levels per group of 32: weight ≈ code·scale + minimum.

    Args:
        weight: (out, in), in a multiple of 32.

    Returns:
        codes int32 (out, in) in 0..15; scale and minimum float32 (out, in/32).
    """
    groups = weight.float().unflatten(1, (-1, INT4_GROUP))  # (out, groups, 32)
    minimum = groups.amin(dim=-1)
    scale = ((groups.amax(dim=-1) - minimum) / 15).clamp(min=1e-8)
    codes = ((groups - minimum[..., None]) / scale[..., None]).round().clamp(0, 15)
    return codes.flatten(1).to(torch.int32), scale, minimum


def make_linear(weight: torch.Tensor, bias: torch.Tensor | None, precision: str) -> Linear:
    """Pack one weight (out, in) for `precision` and return the product as a callable."""
    weight = weight.detach()
    if weight.device.type == "cpu":
        if precision == "int8":
            return Int8Linear(weight, bias)
        if precision == "int4" and Int4Linear.fits(weight):
            return Int4Linear(weight, bias)
        if PackedLinear.available(weight.dtype):
            return PackedLinear(weight, bias)
    return DenseLinear(weight, bias)
