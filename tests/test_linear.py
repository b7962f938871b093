"""Packed matrix products: the same mathematics as a plain product of the same (rounded) weight."""

import pytest
import torch

from playground.lm.linear import (
    DenseLinear,
    Int4Linear,
    PackedLinear,
    Switches,
    WidthSwitch,
    dequantize_int4,
    dequantize_int8,
    make_linear,
    quantize_int4,
    quantize_int8,
)


def random(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("width", [1, 2, 5, 17])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("with_bias", [False, True])
def test_the_packed_product_equals_the_plain_one(width, dtype, with_bias):
    weight, x = random(48, 64, dtype=dtype), random(width, 64, seed=1, dtype=dtype)
    bias = random(48, seed=2, dtype=dtype) if with_bias else None
    if not PackedLinear.available(dtype):
        pytest.skip(f"this processor has no packed {dtype} kernel")
    expected = DenseLinear(weight.float(), None if bias is None else bias.float())(x.float())
    found = PackedLinear(weight, bias)(x).float()
    assert (found - expected).abs().max() < (1e-4 if dtype == torch.float32 else 0.15)


@pytest.mark.parametrize(("precision", "levels"), [("int8", 127), ("int4", 7)])
@pytest.mark.parametrize("width", [1, 3, 12])
def test_quantized_products_equal_the_product_of_the_rounded_weight(precision, levels, width):
    weight, x = random(64, 128, dtype=torch.bfloat16), random(width, 128, seed=1, dtype=torch.bfloat16)
    rounded = (
        dequantize_int8(*quantize_int8(weight)) if precision == "int8" else dequantize_int4(*quantize_int4(weight))
    )
    expected = x.float() @ rounded.float().T
    assert (rounded.float() - weight.float()).abs().max() < weight.float().abs().max() / levels
    for switches in (None, Switches()):
        found = make_linear(weight, None, precision, switches)(x).float()
        assert ((found - expected).abs() < 0.02 * expected.abs().max()).all()


def test_a_switch_uses_the_narrow_kernel_below_its_width_and_the_wide_one_from_there():
    switch = WidthSwitch(lambda x: "narrow", lambda x: "wide", 3)
    assert [switch(torch.zeros(width, 4)) for width in (1, 2, 3, 9)] == ["narrow", "narrow", "wide", "wide"]


def test_each_shape_is_measured_once():
    switches = Switches()
    for seed in range(3):
        make_linear(random(64, 128, seed=seed, dtype=torch.bfloat16), None, "int4", switches)
    assert len(switches._known) == 1


def test_shapes_that_the_int4_kernel_does_not_take_stay_at_16_bit():
    assert not Int4Linear.fits(torch.zeros(64, 40))
    assert not isinstance(make_linear(random(64, 40, dtype=torch.bfloat16), None, "int4", Switches()), WidthSwitch)


@pytest.mark.real
def test_the_int4_copy_of_the_bundled_target_has_the_very_codes_of_its_file():
    """Q4_1 blocks, unpacked to bfloat16 and rounded again, give the codes of the file bit for bit."""
    import numpy
    from gguf import GGUFReader
    from safetensors import safe_open

    from playground.registry.default_target import gguf_path, prepare

    folder = prepare(lambda *_: None)
    tensors = {tensor.name: tensor for tensor in GGUFReader(gguf_path()).tensors}
    with safe_open(folder / "model.safetensors", "pt") as weights:
        for block, ours in (
            ("ffn_down", "mlp.down_proj"),
            ("ffn_gate", "mlp.gate_proj"),
            ("attn_v", "self_attn.v_proj"),
        ):
            weight = weights.get_tensor(f"model.layers.7.{ours}.weight")
            raw = numpy.asarray(tensors[f"blk.7.{block}.weight"].data).reshape(*weight.shape[:1], -1, 20)[..., 4:]
            codes = numpy.concatenate([raw & 15, raw >> 4], axis=-1).reshape(weight.shape)
            assert (quantize_int4(weight)[0].numpy() == codes).all()
