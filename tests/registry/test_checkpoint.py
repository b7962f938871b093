"""One clear sentence for every model that cannot be used, from its files alone."""

import json

import pytest
import torch
from tiny_checkpoints import edit, load, refusal, save_llama, save_model, write_gguf
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForSequenceClassification,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2VLConfig,
    T5Config,
    T5ForConditionalGeneration,
)

from playground import registry
from playground.registry import checkpoint

SMALL = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


@pytest.fixture
def copy(tmp_path):
    """A tiny Llama that a test may spoil."""
    return save_llama(tmp_path / "copy")


@pytest.mark.parametrize("family", ["gemma2", "gemma3_text", "mistral", "gpt_oss", "llama4_text"])
def test_windowed_attention_is_refused_from_its_config_alone(tmp_path, family):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    assert "forgets tokens outside a window" in refusal(tmp_path)


def test_mistral_without_a_window_loads(tmp_path):
    config = MistralConfig(**SMALL, num_key_value_heads=2, vocab_size=320, sliding_window=None, eos_token_id=2)
    assert load(save_model(tmp_path, MistralForCausalLM, config)).num_params


def test_an_encoder_decoder_is_refused(tmp_path):
    config = T5Config(vocab_size=320, d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
    assert "encoder-decoder (t5)" in refusal(save_model(tmp_path, T5ForConditionalGeneration, config))


def test_a_recurrent_model_is_refused(tmp_path):
    config = MambaConfig(vocab_size=320, hidden_size=32, state_size=4, num_hidden_layers=1)
    message = refusal(save_model(tmp_path, MambaForCausalLM, config))
    assert "recurrent state (mamba)" in message and "rolled back" in message


@pytest.mark.parametrize("family", ["qwen3_next", "jamba", "falcon_h1", "lfm2", "recurrent_gemma", "rwkv"])
def test_every_hybrid_family_is_refused_from_its_config_alone(tmp_path, family):
    layers = {"layer_types": ["conv", "full_attention"], "num_hidden_layers": 2} if family == "lfm2" else {}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family} | layers))
    assert "cannot be rolled back" in refusal(tmp_path)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gpt2", "gpt_neox", "opt", "phi", "olmo2", "smollm3"])
def test_plain_attention_families_pass_the_config_check(tmp_path, family):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    assert checkpoint.read_config(tmp_path, "it").model_type == family


def test_a_vision_language_model_is_refused(tmp_path):
    Qwen2VLConfig(architectures=["Qwen2VLForConditionalGeneration"]).save_pretrained(tmp_path)
    assert "vision or audio model (qwen2_vl)" in refusal(tmp_path)


def test_a_model_that_generates_no_text_is_refused(tmp_path):
    bert = BertConfig(**SMALL, vocab_size=320)
    assert "saved as BertForMaskedLM" in refusal(save_model(tmp_path / "bert", BertForMaskedLM, bert))
    judge = LlamaConfig(**SMALL, vocab_size=320)
    folder = save_model(tmp_path / "judge", LlamaForSequenceClassification, judge)
    assert "saved as LlamaForSequenceClassification" in refusal(folder)


def test_custom_code_is_never_run(tmp_path):
    custom = {"model_type": "homemade", "auto_map": {"AutoModelForCausalLM": "modeling.Homemade"}}
    (tmp_path / "config.json").write_text(json.dumps(custom))
    (tmp_path / "modeling.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert "code from a model is never executed" in refusal(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_an_unknown_family_is_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "from_the_future"}))
    assert "family from_the_future, which this version of transformers does not know" in refusal(tmp_path)


def test_weights_that_are_quantized_already_are_refused(copy):
    edit(copy / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    assert "quantized already" in refusal(copy)


def test_only_bin_weights_are_refused(copy):
    (copy / "model.safetensors").unlink()
    torch.save({}, copy / "pytorch_model.bin")
    assert "unsafe format only" in refusal(copy)


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    assert "is no model folder: it has no config.json" in refusal(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "an adapter, not a whole model" in refusal(tmp_path)
    (tmp_path / "file.txt").write_text("x")
    assert "is a file, not a model folder" in refusal(tmp_path / "file.txt")


def test_a_damaged_folder_is_refused(copy):
    weights = copy / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert "shorter than its header says" in refusal(copy)
    weights.write_bytes(b"\xff" * 100)
    assert "is no safetensors file" in refusal(copy)
    weights.unlink()
    assert "holds no weights" in refusal(copy)
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "2 of 2 weight files are missing" in refusal(copy)
    (copy / "config.json").write_text("{")
    assert "config.json cannot be read" in refusal(copy)


def test_a_folder_without_a_tokenizer_is_refused(copy):
    for file in copy.glob("tokenizer*"):
        file.unlink()
    assert "tokenizer" in refusal(copy)


def test_a_gguf_file_of_a_supported_family_loads_after_stating_its_memory(tmp_path):
    file = write_gguf(tmp_path / "tiny.gguf")
    seen = []
    loaded = registry.load(str(file), "bfloat16", lambda *report: seen.append(report))
    stated = [index for index, report in enumerate(seen) if "are unpacked to about" in report[1]]
    begun = [index for index, report in enumerate(seen) if "of weights" in report[1]]
    assert stated and stated[0] < begun[0] and "are unpacked to about" in loaded.notice
    assert loaded.end_ids == (2,) and loaded.context_limit == 256
    assert load(tmp_path, "bfloat16").num_params == loaded.num_params
    assert "it cannot be loaded in nf4" in refusal(file, "nf4")


def test_a_gguf_file_of_another_family_is_refused(tmp_path):
    assert "family rwkv6, which cannot be unpacked" in refusal(write_gguf(tmp_path / "tiny.gguf", family="rwkv6"))
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and then nothing")
    assert "no readable GGUF file" in refusal(tmp_path / "bad.gguf")
