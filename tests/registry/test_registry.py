"""Loading by name: what a loaded model says about itself, and what the lists offer."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from tiny_checkpoints import edit, load, quiet, refusal, save_gpt2, save_llama, tiny_tokenizer

from playground import registry
from playground.registry import loading, precision


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save_llama(tmp_path_factory.mktemp("llama"))


@pytest.fixture
def copy(llama, tmp_path):
    """A copy of the tiny Llama that a test may spoil."""
    return shutil.copytree(llama, tmp_path / "copy")


def test_a_local_folder_loads_ready_to_decode(llama):
    seen = []
    loaded = registry.load(str(llama), "float32", lambda *report: seen.append(report))
    assert loaded.name == str(llama) and loaded.precision == "float32" and loaded.notice == ""
    assert not loaded.model.training and not any(weight.requires_grad for weight in loaded.model.parameters())
    assert loaded.num_params == sum(weight.numel() for weight in loaded.model.parameters())
    assert loaded.memory_bytes == 4 * loaded.num_params
    assert loaded.context_limit == 256 and loaded.end_ids == (2,)
    assert {stage for stage, _, _ in seen} == {"loading"} and seen[-1][2] == 1.0


def test_a_gpt2_folder_loads_with_its_own_context_limit(tmp_path):
    assert load(save_gpt2(tmp_path)).context_limit == 128


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int8", "int4"])
def test_the_dtype_follows_the_precision_and_packed_ones_start_from_bfloat16(llama, name):
    loaded = load(llama, name)
    expected = torch.float16 if name == "float16" else torch.bfloat16
    assert {weight.dtype for weight in loaded.model.parameters()} == {expected}
    assert loaded.precision == name
    logits = loaded.model(torch.tensor([[1, 5, 9]])).logits
    assert logits.isfinite().all()
    if name in ("int8", "int4"):
        # small models keep a 16-bit copy for wide passes, and say so
        assert 2 * loaded.num_params < loaded.memory_bytes < 3.1 * loaded.num_params


@pytest.mark.parametrize("name", ["nf4", "fp4"])
def test_four_bit_copies_run_on_this_device_and_need_less_memory(tmp_path, name):
    if precision.unavailable(name, registry.device()):
        pytest.skip(precision.unavailable(name, registry.device()))
    folder = save_llama(tmp_path, intermediate_size=128)
    loaded, plain = load(folder, name), load(folder, "bfloat16")
    assert loaded.memory_bytes < plain.memory_bytes and loaded.num_params == plain.num_params
    ids = torch.tensor([[1, 5, 9, 30]])
    difference = loaded.model(ids).logits.float() - plain.model(ids).logits.float()
    assert difference.norm() / plain.model(ids).logits.float().norm() < 0.5


def test_four_bit_blocks_that_do_not_divide_a_layer_are_refused_on_a_cpu(llama):
    if registry.device() != "cpu" or precision.unavailable("nf4", "cpu"):
        pytest.skip("needs bitsandbytes on a CPU")
    assert "96 wide, no multiple of 64" in refusal(llama, "nf4")


def test_float16_falls_back_with_a_notice_where_it_does_not_run(llama, monkeypatch):
    monkeypatch.setattr(precision, "unavailable", lambda name, device: "no kernel." if name == "float16" else "")
    loaded = load(llama, "float16")
    assert loaded.precision == "float32" and "float16 does not run" in loaded.notice


def test_both_end_tokens_count_and_the_turn_end_of_the_template_too(copy):
    edit(copy / "generation_config.json", eos_token_id=[2, 0])
    assert load(copy).end_ids == (0, 2)
    edit(copy / "generation_config.json", eos_token_id=[0, 5000])  # 5000 is no token: it can never come
    edit(copy / "config.json", eos_token_id=None)
    assert load(copy).end_ids == (0, 2)


def test_a_penalty_in_the_generation_settings_is_named_and_not_applied(copy):
    edit(copy / "generation_config.json", repetition_penalty=1.3, temperature=0.6, do_sample=True)
    notice = load(copy).notice
    assert "repetition_penalty 1.3" in notice and "not applied" in notice and "temperature" not in notice


def test_padded_embeddings_load(tmp_path):
    tokenizer = tiny_tokenizer()
    loaded = load(save_llama(tmp_path, tokenizer, rows=len(tokenizer) + 128))
    assert loaded.model.get_input_embeddings().num_embeddings == len(loaded.tokenizer) + 128


@pytest.mark.parametrize(
    "name", ["", "/no/such/folder", "./nothing here", "a/b/c", "../x", "model.gguf", "name with space"]
)
def test_a_name_that_is_nothing_is_refused_without_a_network_call(name, monkeypatch):
    monkeypatch.setattr("playground.registry.hub.fetch", lambda *args: pytest.fail("the hub was asked"))
    message = refusal(name)
    assert "No model was chosen" in message or "neither a folder on this machine nor a Hub id" in message


def test_too_little_memory_is_said_before_loading(llama, monkeypatch):
    monkeypatch.setattr(loading, "free_memory", lambda where: 1000)
    assert "GB of memory, and 0.0 GB are free" in refusal(llama)


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("CUDA"), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_running_out_of_memory_while_loading_gives_a_sentence(llama, monkeypatch, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", fail)
    assert "not enough memory" in refusal(llama)


def test_an_exception_of_the_progress_report_stops_the_load(llama):
    def stop(stage, message, fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        registry.load(str(llama), "float32", stop)


def test_targets_and_drafts_are_listed_with_facts():
    options = {option.id: option for option in registry.target_options()}
    assert options["smollm2-135m"].available
    assert "135M parameters · licence apache-2.0" in options["smollm2-135m"].detail
    assert [option.id for option in registry.draft_options("smollm2-1.7b")] == ["smollm2-135m", "smollm2-360m"]
    assert [option.id for option in registry.draft_options("openai-community/gpt2-large")] == ["distilgpt2"]
    assert registry.draft_options("/some/folder") == []


def test_a_cpu_is_offered_the_bundled_target(monkeypatch):
    monkeypatch.setattr(registry, "device", lambda: "cpu")
    assert registry.suggest_target() == "smollm2-135m"


@pytest.mark.parametrize(
    ("gigabytes", "reachable", "expected"),
    [(140, True, "qwen3-8b"), (14, True, "qwen3-4b"), (6, True, "smollm2-1.7b"), (140, False, "smollm2-135m")],
)
def test_a_gpu_is_offered_the_largest_pair_that_fits(monkeypatch, gigabytes, reachable, expected):
    monkeypatch.setattr(registry, "device", lambda: "cuda")
    monkeypatch.setattr(registry, "largest_device_memory", lambda where: gigabytes * 10**9)
    monkeypatch.setattr(registry, "hub_reachable", lambda: reachable)
    monkeypatch.setattr(registry.hub, "cached_folder", lambda repo: None)
    assert registry.suggest_target() == expected


def test_on_a_gpu_a_model_too_large_for_one_device_is_spread(monkeypatch):
    spot = SimpleNamespace(gguf_file=None)
    monkeypatch.setattr(loading, "largest_device_memory", lambda where: 10 * 10**9)
    assert loading._load_kwargs(spot, "bfloat16", "cuda", 8 * 10**9)["device_map"] == {"": 0}
    assert loading._load_kwargs(spot, "bfloat16", "cuda", 15 * 10**9)["device_map"] == "auto"
    config = loading._load_kwargs(spot, "int8", "cuda", 1)["quantization_config"]
    assert config.load_in_8bit
    assert loading._load_kwargs(spot, "nf4", "cuda", 1)["quantization_config"].bnb_4bit_quant_type == "nf4"


def test_the_environment_is_plain_values():
    described = registry.environment()
    assert json.loads(json.dumps(described)) == described
    assert described["cores"] >= 1 and described["torch"] and described["transformers"]


@pytest.mark.real
def test_the_bundled_target_loads_by_its_id_and_ends_on_both_end_tokens():
    loaded = registry.load("smollm2-135m", "bfloat16", quiet)
    assert loaded.num_params == registry.manifest.entries()["smollm2-135m"].num_params
    assert loaded.end_ids == (0, 2) and loaded.context_limit == 8192 and not loaded.notice
    assert loaded.name == "smollm2-135m" and loaded.memory_bytes == 2 * loaded.num_params
