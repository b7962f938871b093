"""Which number formats a device really runs, found out by running each once on a tiny layer.

float32, bfloat16 and float16 are torch's own; fp8 on a GPU uses torch's scaled product; int8 and
int4 on a CPU use torch's packed kernels; nf4, fp4, and int8 on a GPU, use bitsandbytes. Nothing is
assumed from version numbers, and no speed is promised: what a format gains is measured by a run.
Knows nothing of models.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from playground.config import PRECISIONS, WIDE_COPY_MAX_PARAMS
from playground.registry.errors import ModelError
from playground.registry.manifest import Option

LABELS = {
    "float32": "float32 (exact, largest)",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "fp8": "FP8 (e4m3, scales per row)",
    "int8": "int8",
    "int4": "int4 (groups of 32)",
    "nf4": "NF4 (4-bit)",
    "fp4": "FP4 (4-bit)",
}
# Bits per weight, scales included: int4 has a 16-bit scale and zero per 32, nf4/fp4 a 32-bit scale per 64.
BITS = {"float32": 32, "bfloat16": 16, "float16": 16, "fp8": 8, "int8": 8, "int4": 5, "nf4": 4.5, "fp4": 4.5}
UNQUANTIZED = ("float32", "bfloat16", "float16")
UNPACKS = "Unpacks its weights in every step: saves memory on a CPU, not time."
CPU_REMARKS = {"float16": "Often slower than bfloat16 on a CPU.", "nf4": UNPACKS, "fp4": UNPACKS}


def memory_bytes(num_params: int, precision: str, num_kept: int = 0, device: str = "") -> int:
    """Return the bytes that weights need at a precision.

    Args:
        num_params: all weights, shared ones counted once.
        precision: one of config.PRECISIONS.
        num_kept: how many of them stay at 16 bit when the rest is quantized (embeddings).
        device: "cpu" counts the 16-bit copy that int8 and int4 keep there in small models.
    """
    if precision in UNQUANTIZED:
        return round(num_params * BITS[precision] / 8)
    copy = device == "cpu" and precision in ("int8", "int4") and num_params <= WIDE_COPY_MAX_PARAMS
    return round((num_params - num_kept) * BITS[precision] / 8) + num_kept * 2 + copy * num_params * 2


def precision_options(device: str) -> list[Option]:
    """Return every precision in the order of config.PRECISIONS, with the reason where it does not run.

    The first call runs each format once, which imports bitsandbytes and takes a few seconds.
    """
    return [_option(precision, device) for precision in PRECISIONS]


def _option(precision: str, device: str) -> Option:
    reason = unavailable(precision, device)
    detail = CPU_REMARKS.get(precision, "") if device == "cpu" and not reason else ""
    return Option(precision, LABELS[precision], not reason, reason, detail)


def fastest_quantized(device: str) -> str:
    """Return the quantized format to take for "auto": the one whose kernel reads the fewest bytes.

    Raises:
        ModelError: no quantized format runs on this device.
    """
    order = ("nf4", "fp8", "int8", "fp4") if device == "cuda" else ("int4", "int8", "nf4", "fp4")
    for precision in order:
        if not unavailable(precision, device):
            return precision
    raise ModelError("No quantized format runs on this device.", "Choose another proposer, such as n-gram.")


def usable_precision(precision: str, device: str) -> tuple[str, str]:
    """Return the precision to load with, and a notice when it is another than the one asked for.

    A 16-bit format that the device lacks falls back to float32; a quantized one does not, since
    that would change what is compared.

    Raises:
        ModelError: unknown precision, or a quantized one that does not run here.
    """
    if precision not in PRECISIONS:
        raise ModelError(f"{precision} is no known precision.", f"Choose one of {', '.join(PRECISIONS)}.")
    reason = unavailable(precision, device)
    if not reason:
        return precision, ""
    if precision in UNQUANTIZED:
        return "float32", f"{precision} does not run on this device, so the model was loaded in float32: {reason}"
    raise ModelError(f"{precision} does not run on this device: {reason}", "Choose another precision.")


@cache
def unavailable(precision: str, device: str) -> str:
    """Return why a precision does not run on a device, or "" when a tiny layer ran in it."""
    if precision == "fp8" and device != "cuda":
        return "its kernel is for GPUs of compute capability 8.9 and later."
    if precision == "int4" and device != "cpu":
        return "its packed kernel is for CPUs only; nf4 is the 4-bit format of GPUs."
    try:
        _in_passing_thread(_probe, precision, device)
    except ImportError:
        return "the bitsandbytes package is not installed."
    except Exception as error:  # whatever a kernel raises where it is missing
        return f"its kernel fails here ({(str(error).strip().splitlines() or ['no reason given'])[0][:120]})."
    return ""


def _in_passing_thread(function: Callable, *arguments) -> None:
    """Run a function in a thread that ends with it, so that its OpenMP workers end too.

    libgomp counts the workers of every live thread; more of them than cores and all of them stop
    spinning at barriers, which makes the engine's passes a third slower for the rest of the process.
    """
    with ThreadPoolExecutor(1) as pool:
        pool.submit(function, *arguments).result()


def _probe(precision: str, device: str) -> None:
    """Run one small matrix product in a format and check the result; raises when it cannot be used."""
    import torch

    layer = _layers()[f"int8 {device}" if precision == "int8" else precision]
    with torch.inference_mode():
        weight = torch.linspace(-1, 1, 64 * 64, device=device).reshape(64, 64)
        inputs = torch.linspace(-1, 1, 2 * 64, device=device).reshape(2, 64)
        expected = inputs @ weight.T
        error = (layer(inputs, weight, precision).float() - expected).norm() / expected.norm()
    if not error < 0.3:
        raise RuntimeError(f"its results are off by {error:.0%}")


def _layers() -> dict[str, Callable]:
    """Map each format to a function (inputs, weight, precision) → inputs @ weight.T in that format."""
    return {
        "float32": _torch_product,
        "bfloat16": _torch_product,
        "float16": _torch_product,
        "fp8": _fp8_product,
        "int8 cpu": _int8_product,
        "int8 cuda": _bitsandbytes_int8_product,
        "int4": _int4_product,
        "nf4": _bitsandbytes_4bit_product,
        "fp4": _bitsandbytes_4bit_product,
    }


def _torch_product(inputs, weight, precision):
    import torch

    dtype = getattr(torch, precision)
    return torch.nn.functional.linear(inputs.to(dtype), weight.to(dtype))


def _int8_product(inputs, weight, precision):
    import torch

    scales = weight.abs().amax(1) / 127
    packed = (weight / scales[:, None]).round().to(torch.int8)
    return torch._weight_int8pack_mm(inputs.bfloat16(), packed, scales.bfloat16())


def _fp8_product(inputs, weight, precision):
    from playground.lm.fp8 import Fp8Linear

    return Fp8Linear(weight, None)(inputs)


def _int4_product(inputs, weight, precision):
    """Groups of 32 along the input: codes 0..15 stand for (code − 8) · scale + zero."""
    import torch

    groups = weight.reshape(weight.shape[0], -1, 32)
    low, high = groups.amin(-1), groups.amax(-1)
    scales = ((high - low) / 15).clamp(min=1e-6)
    codes = ((groups - low[..., None]) / scales[..., None]).round().clamp(0, 15).to(torch.int32)
    zeros = low + 8 * scales
    packed = torch._convert_weight_to_int4pack_for_cpu(codes.reshape(weight.shape), 1)
    scales_and_zeros = torch.stack([scales, zeros], -1).transpose(0, 1).contiguous().bfloat16()
    return torch._weight_int4pack_mm_for_cpu(inputs.bfloat16(), packed, 32, scales_and_zeros)


def _bitsandbytes_int8_product(inputs, weight, precision):
    import bitsandbytes
    import torch

    layer = bitsandbytes.nn.Linear8bitLt(weight.shape[1], weight.shape[0], bias=False, has_fp16_weights=False)
    layer.weight = bitsandbytes.nn.Int8Params(weight.cpu().half(), requires_grad=False, has_fp16_weights=False)
    return layer.to(inputs.device)(inputs.to(torch.float16))


def _bitsandbytes_4bit_product(inputs, weight, precision):
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it warns of optional kernels at import
    import bitsandbytes
    import torch

    layer = bitsandbytes.nn.Linear4bit(
        weight.shape[1], weight.shape[0], bias=False, compute_dtype=torch.bfloat16, quant_type=precision
    )
    layer.weight = bitsandbytes.nn.Params4bit(weight.cpu().bfloat16(), requires_grad=False, quant_type=precision)
    return layer.to(inputs.device)(inputs.bfloat16())
