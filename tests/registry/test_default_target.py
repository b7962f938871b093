"""The bundled target: fetched, checked and converted once, into what transformers loads by itself."""

import json
import time
from pathlib import Path

import pytest
from tiny_checkpoints import quiet, write_gguf
from tiny_package import assert_only_the_finished_files, build_package, downloader, empty_cache, no_download, sha256

from playground.registry import conversion, default_target


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return build_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def root(tmp_path, monkeypatch, package):
    return empty_cache(tmp_path, monkeypatch, package)


@pytest.fixture
def download(package):
    return downloader(package)


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("SPECPLAY_CACHE", str(tmp_path / "a"))
    assert default_target.cache_root() == tmp_path / "a"
    monkeypatch.delenv("SPECPLAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert default_target.cache_root() == tmp_path / "b" / "specplay"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_target.cache_root() == Path.home() / ".cache" / "specplay"


def test_the_first_start_builds_a_folder_that_transformers_loads_and_the_second_does_nothing(root, download):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    seen = []
    folder = default_target.prepare(lambda *report: seen.append(report), download)
    assert_only_the_finished_files(root)
    assert {stage for stage, _, _ in seen} == {"downloading", "converting"}
    fractions = [fraction for stage, _, fraction in seen if stage == "converting"]
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] <= 1
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.generation_config.eos_token_id == [2, 0]
    text = "The quick fox\n\n12 dogs<|im_end|>"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert "<|im_start|>assistant" in tokenizer.chat_template
    assert default_target.prepare(quiet, no_download) == folder


def test_the_conversion_gives_the_weights_that_transformers_own_conversion_gives(package, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    conversion.convert(package.gguf, tmp_path, quiet)
    mine = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16).state_dict()
    theirs = AutoModelForCausalLM.from_pretrained(
        package.gguf.parent,
        gguf_file=package.gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    ).state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_digits_are_split_before_spaces_are_grouped(package, tmp_path):
    conversion.convert(package.gguf, tmp_path, quiet)
    rule = json.loads((tmp_path / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"]
    assert rule[0] == {"type": "Digits", "individual_digits": True}
    assert rule[1]["type"] == "ByteLevel"


def test_a_file_of_another_family_is_not_converted(tmp_path):
    other = write_gguf(tmp_path / "other.gguf", splitting="gpt-2")
    with pytest.raises(ValueError, match="llama/gpt-2"):
        conversion.convert(other, tmp_path, quiet)


@pytest.mark.real
def test_the_real_target_loads_in_under_five_seconds_and_answers():
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = default_target.prepare(quiet)
    assert sha256(default_target.gguf_path()) == default_target.GGUF_SHA256
    started = time.monotonic()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert time.monotonic() - started < 5
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    output = model.generate(**inputs, max_new_tokens=12, do_sample=False)
    assert "Paris" in tokenizer.decode(output[0])
    assert int(output[0, -1]) == tokenizer.convert_tokens_to_ids("<|im_end|>")


@pytest.mark.real
def test_the_real_weights_are_those_of_transformers_own_conversion():
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, GgufConfig

    mine = load_file(default_target.prepare(quiet) / "model.safetensors")
    theirs = AutoModelForCausalLM.from_pretrained(
        default_target.cache_root(),
        gguf_file=default_target.GGUF_NAME,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    ).state_dict()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert set(theirs) - set(mine) == {"lm_head.weight"}  # shared with the embeddings
