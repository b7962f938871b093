"""Which precisions a device offers, what "auto" picks, and what weights need."""

import sys
import threading

import pytest
import torch

from playground.config import PRECISIONS
from playground.registry import precision
from playground.registry.errors import ModelError


@pytest.fixture
def fresh():
    """Forget what was probed, before and after."""
    precision.unavailable.cache_clear()
    yield
    precision.unavailable.cache_clear()


def test_every_precision_is_listed_in_order_and_an_unavailable_one_says_why():
    options = precision.precision_options("cpu")
    assert [option.id for option in options] == list(PRECISIONS)
    assert all(option.available != bool(option.reason) for option in options)
    assert all(option.available for option in options if option.id in precision.UNQUANTIZED)


def test_a_gpu_that_is_not_there_runs_nothing_but_gives_reasons(fresh, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert not any(option.available for option in precision.precision_options("cuda"))
    assert "CPUs only" in precision.unavailable("int4", "cuda")


@pytest.mark.parametrize("name", PRECISIONS)
def test_what_is_offered_gives_right_products(name):
    if precision.unavailable(name, "cpu"):
        pytest.skip(precision.unavailable(name, "cpu"))
    product = precision._layers()["int8 cpu" if name == "int8" else name]
    generator = torch.Generator().manual_seed(0)
    weight, inputs = torch.randn(64, 128, generator=generator), torch.randn(3, 128, generator=generator)
    error = (product(inputs, weight, name).float() - inputs @ weight.T).norm() / (inputs @ weight.T).norm()
    allowed = {"float32": 1e-5, "bfloat16": 0.01, "float16": 0.002, "int8": 0.02, "int4": 0.12, "nf4": 0.15, "fp4": 0.2}
    assert error < allowed[name]


def test_without_bitsandbytes_its_formats_are_off_and_the_rest_stays(fresh, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    options = {option.id: option for option in precision.precision_options("cpu")}
    assert options["nf4"].reason == options["fp4"].reason == "the bitsandbytes package is not installed."
    assert options["bfloat16"].available


def test_auto_takes_the_packed_kernels_first_and_falls_back(fresh, monkeypatch):
    missing = set()
    monkeypatch.setattr(precision, "unavailable", lambda name, device: "missing" if name in missing else "")
    assert precision.fastest_quantized("cpu") == "int4"
    assert precision.fastest_quantized("cuda") == "nf4"
    missing.add("int4")
    assert precision.fastest_quantized("cpu") == "int8"
    missing.update(("int8", "nf4", "fp4"))
    with pytest.raises(ModelError, match="No quantized format"):
        precision.fastest_quantized("cpu")


def test_a_missing_kernel_is_reported_not_raised(fresh, monkeypatch):
    monkeypatch.delattr(torch, "_weight_int4pack_mm_for_cpu")
    assert "kernel fails here" in precision.unavailable("int4", "cpu")
    assert precision.fastest_quantized("cpu") == "int8"


def test_a_kernel_with_wrong_results_is_not_offered(fresh, monkeypatch):
    monkeypatch.setattr(torch, "_weight_int8pack_mm", lambda inputs, packed, scales: inputs * 0)
    assert "off by 100%" in precision.unavailable("int8", "cpu")


def test_float16_that_does_not_run_falls_back_to_float32_with_a_notice(monkeypatch):
    reasons = {"float16": "no half kernels.", "nf4": "not installed."}
    monkeypatch.setattr(precision, "unavailable", lambda name, device: reasons.get(name, ""))
    chosen, notice = precision.usable_precision("float16", "cpu")
    assert chosen == "float32"
    assert "float16 does not run on this device" in notice and "no half kernels" in notice
    assert precision.usable_precision("bfloat16", "cpu") == ("bfloat16", "")
    with pytest.raises(ModelError, match="nf4 does not run on this device: not installed"):
        precision.usable_precision("nf4", "cpu")
    with pytest.raises(ModelError, match="no known precision"):
        precision.usable_precision("int3", "cpu")


def test_memory_counts_bits_scales_and_what_stays_at_16_bit():
    assert precision.memory_bytes(1000, "float32") == 4000
    assert precision.memory_bytes(1000, "bfloat16", num_kept=500) == 2000
    assert precision.memory_bytes(1000, "int8", num_kept=200) == 800 + 400
    assert precision.memory_bytes(1024, "int4") == 1024 // 2 + 1024 // 32 * 4
    assert precision.memory_bytes(1000, "int8", device="cpu") == 1000 + 2000
    assert precision.memory_bytes(10**9, "int8", device="cpu") == 10**9
    assert precision.memory_bytes(1024, "nf4") == 1024 // 2 + 1024 // 64 * 4


def test_a_format_is_tried_in_a_thread_that_ends_so_its_openmp_workers_end_too(monkeypatch):
    threads = []
    monkeypatch.setattr(precision, "_probe", lambda *_: threads.append(threading.current_thread()))
    assert precision.unavailable("float32", "cpu") == ""
    assert threads[0] is not threading.current_thread()
    assert not threads[0].is_alive()
