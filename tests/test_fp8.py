"""Products in 8-bit floating point: CPUs emulate the kernel of GPUs, slowly but with its numbers."""

import torch
from fakes import tiny_llama

from playground.lm import wrap
from playground.lm.fp8 import Fp8Linear, to_fp8
from playground.registry.precision import precision_options


def test_rows_are_rounded_with_scales_of_their_own():
    rows = torch.randn(4, 64) * torch.tensor([[1e-3], [1.0], [1e3], [0.0]])
    codes, scale = to_fp8(rows)
    assert torch.isfinite(codes.float()).all()
    error = (codes.float() * scale - rows).norm(dim=-1)
    assert (error <= 0.04 * rows.norm(dim=-1)).all()


def test_the_product_is_close_and_an_outlier_spoils_its_own_row_only():
    torch.manual_seed(0)
    x, weight, bias = torch.randn(5, 64), torch.randn(96, 64), torch.randn(96)
    x[2, 7] = 1e4
    y, expected = Fp8Linear(weight, bias.bfloat16())(x).float(), x @ weight.T + bias
    error = (y - expected).norm(dim=-1) / expected.norm(dim=-1)
    assert (error < 0.06).all()


def test_a_whole_model_runs_in_fp8_near_its_bfloat16_self():
    model = tiny_llama().bfloat16()
    vocab = model.config.vocab_size
    exact, rounded = (wrap(model, name, vocab, 512).extend([5, 6, 7, 8]) for name in ("bfloat16", "fp8"))
    assert (exact - rounded).norm() < 0.25 * exact.norm()
    assert not torch.equal(exact, rounded)


def test_a_cpu_does_not_offer_it_and_says_why():
    option = next(item for item in precision_options("cpu") if item.id == "fp8")
    assert not option.available
    assert "GPU" in option.reason
