"""Matrix products for one decoder: plain, packed for oneDNN, int8 and int4.

A kernel is a callable (n, in) → (n, out). `make_linear` packs the weight once; the fastest kernel
that the device and the shape allow is chosen, always with the same mathematics. Knows no models.

Why packed: PyTorch hands oneDNN a plain row-major weight, which it re-reads in a poor order for a
handful of rows; weights reordered once (what the inductor compiler does when freezing) take about
half the time on a CPU with AVX-512. int8 and int4 are weight-only, symmetric per row and
asymmetric per group of 32, by PyTorch's own CPU kernels. Those read few bytes but compute slowly:
for more than a few rows the same rounded weights, unpacked to 16 bit, are faster, so a quantized
product keeps both and switches at the width where measuring says so.
"""

from collections.abc import Callable
from time import perf_counter

import torch
import torch.nn.functional as F

from playground.lm.fp8 import Fp8Linear

Linear = Callable[[torch.Tensor], torch.Tensor]

PACK_ROWS_HINT = 8  # rows oneDNN lays the packed weight out for: best over 1..16 where measured
INT4_GROUP = 32
SWITCH_WIDTHS = (2, 3, 4, 6, 8)
SWITCH_REPEATS = 7


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

    def __init__(self, codes: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None):
        self.codes, self.scale, self.bias = codes, scale, bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = torch._weight_int8pack_mm(x, self.codes, self.scale)
        return y if self.bias is None else y + self.bias


class Int4Linear:
    """Weight-only int4 in groups of 32 along the input, scale and minimum per group; x in bfloat16."""

    def __init__(self, codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor, bias: torch.Tensor | None):
        self.packed = torch._convert_weight_to_int4pack_for_cpu(codes, 1)
        # The kernel computes (code − 8)·scale + zero, with scale and zero as (groups, out, 2).
        self.scales_and_zeros = torch.stack((scale, zero), dim=-1).transpose(0, 1).contiguous()
        self.bias = bias

    @staticmethod
    def fits(weight: torch.Tensor) -> bool:
        """Whether the kernel takes this shape."""
        return weight.shape[1] % INT4_GROUP == 0 and weight.shape[0] % 16 == 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = torch._weight_int4pack_mm_for_cpu(x, self.packed, INT4_GROUP, self.scales_and_zeros)
        return y if self.bias is None else y + self.bias


class WidthSwitch:
    """Two kernels of one product: `narrow` for fewer than `wide_from` rows, `wide` from there on."""

    def __init__(self, narrow: Linear, wide: Linear, wide_from: int):
        self.narrow, self.wide, self.wide_from = narrow, wide, wide_from

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(x) if x.shape[0] >= self.wide_from else self.narrow(x)


class Switches:
    """Where to switch from a narrow to a wide kernel, measured once per shape for one model."""

    def __init__(self):
        self._known: dict[tuple, int] = {}

    def join(self, narrow: Linear, wide: Linear, shape: torch.Size) -> WidthSwitch:
        """Put two kernels of one product, weight shape (out, in), behind a switch."""
        key = (type(narrow), tuple(shape))
        if key not in self._known:
            self._known[key] = _faster_from(narrow, wide, shape[1])
        return WidthSwitch(narrow, wide, self._known[key])


def _faster_from(narrow: Linear, wide: Linear, num_in: int) -> int:
    """The smallest width from which the wide kernel wins, by the fastest of a few interleaved calls."""
    for width in SWITCH_WIDTHS:
        x = torch.ones(width, num_in, dtype=torch.bfloat16)
        times: dict[Linear, list[float]] = {narrow: [], wide: []}
        for _ in range(SWITCH_REPEATS):
            for kernel, spent in times.items():
                start = perf_counter()
                kernel(x)
                spent.append(perf_counter() - start)
        if min(times[wide]) < min(times[narrow]):
            return width
    return SWITCH_WIDTHS[-1] + 1


def quantize_int8(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a weight (out, in) to int8: codes (out, in) and a bfloat16 scale per row (out,)."""
    weight = weight.float()
    scale = (weight.abs().amax(dim=1).clamp(min=1e-8) / 127).to(torch.bfloat16)
    codes = (weight / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
    return codes, scale


def dequantize_int8(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The bfloat16 weight that int8 codes stand for."""
    return (codes.float() * scale.float()[:, None]).to(torch.bfloat16)


def quantize_int4(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Round a weight to 16 levels per group of 32: weight ≈ (code − 8)·scale + zero.

    A weight that comes from GGUF's Q4_1 blocks gets the very codes of the file back: every such block
    uses both end levels, so its minimum and step can be read off it. Nothing is rounded twice.

    Args:
        weight: (out, in), in a multiple of 32.

    Returns:
        codes int32 (out, in) in 0..15; scale and zero bfloat16 (out, in/32).
    """
    groups = weight.float().unflatten(1, (-1, INT4_GROUP))  # (out, groups, 32)
    minimum = groups.amin(dim=-1)
    scale = ((groups.amax(dim=-1) - minimum) / 15).clamp(min=1e-8)
    codes = ((groups - minimum[..., None]) / scale[..., None]).round().clamp(0, 15)
    zero = minimum + 8 * scale
    return codes.flatten(1).to(torch.int32), scale.to(torch.bfloat16), zero.to(torch.bfloat16)


def dequantize_int4(codes: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    """The bfloat16 weight that int4 codes stand for."""
    groups = codes.unflatten(1, (-1, INT4_GROUP)).float()
    return ((groups - 8) * scale.float()[..., None] + zero.float()[..., None]).flatten(1).to(torch.bfloat16)


def make_linear(
    weight: torch.Tensor, bias: torch.Tensor | None, precision: str, switches: Switches | None = None
) -> Linear:
    """Pack one weight (out, in) for `precision` and return the product as a callable.

    Args:
        weight: the weight in the model's dtype; bias: (out,) or None.
        precision: one of config.PRECISIONS; on a GPU all but fp8 leave the weight as it is.
        switches: given, int8 and int4 also keep a 16-bit copy of the rounded weight for wide passes.
    """
    weight = weight.detach()
    if precision == "fp8" and Fp8Linear.fits(weight):
        return Fp8Linear(weight, bias)
    if weight.device.type != "cpu":
        return DenseLinear(weight, bias)
    half_bias = None if bias is None else bias.to(torch.bfloat16)
    if precision == "int8":
        codes, scale = quantize_int8(weight)
        narrow, rounded = Int8Linear(codes, scale, half_bias), lambda: dequantize_int8(codes, scale)
    elif precision == "int4" and Int4Linear.fits(weight):
        codes, scale, zero = quantize_int4(weight)
        narrow, rounded = Int4Linear(codes, scale, zero, half_bias), lambda: dequantize_int4(codes, scale, zero)
    else:
        return _full_width(weight, bias)
    if switches is None:
        return narrow
    return switches.join(narrow, _full_width(rounded(), half_bias), weight.shape)


def _full_width(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    return PackedLinear(weight, bias) if PackedLinear.available(weight.dtype) else DenseLinear(weight, bias)
