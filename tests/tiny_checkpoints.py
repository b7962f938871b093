"""Builds tiny checkpoints on disk for tests: random weights, trained tokenizers, no network.

A folder takes a few hundred kB and a tenth of a second. Knows nothing of what is tested with it.
"""

import json
from pathlib import Path

import numpy
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from playground import registry

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A target checks what a draft has guessed, and keeps what it likes.",
    "def add(a, b):\n    return a + b",
    "Numbers such as 12 and 345 are split into digits.",
]
OTHER_SENTENCES = [
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "Ganz andere Wörter, andere Silben.",
]
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def quiet(stage, message, fraction):
    """Take a progress report and do nothing."""


def load(path, precision="float32"):
    """Load a folder or file through the registry."""
    return registry.load(str(path), precision, quiet)


def refusal(path, precision="float32") -> str:
    """Return the sentence with which the registry refuses a folder or file."""
    with pytest.raises(registry.ModelError) as caught:
        load(path, precision)
    assert caught.value.message and caught.value.hint
    assert "\n" not in caught.value.message + caught.value.hint
    return caught.value.message


def edit(file: Path, **changes) -> None:
    """Change some entries of a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def tiny_tokenizer(sentences=SENTENCES, special=SPECIAL, added=(), template=TEMPLATE, start="<|im_start|>"):
    """Return a byte-level BPE tokenizer trained on a few sentences; `added` tokens come last."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=list(special), initial_alphabet=alphabet)
    backend.train_from_iterator(sentences, trainer)
    backend.add_special_tokens(list(added))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=start, eos_token="<|im_end|>", chat_template=template
    )


def save_llama(folder: Path, tokenizer=None, rows: int | None = None, seed: int = 0, **settings) -> Path:
    """Save a random 2-layer Llama with its tokenizer; `rows` is the (padded) embedding size."""
    tokenizer = tokenizer or tiny_tokenizer()
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        **sizes | {"num_key_value_heads": 2, "max_position_embeddings": 256, "tie_word_embeddings": True} | settings,
        vocab_size=rows or len(tokenizer),
        eos_token_id=tokenizer.eos_token_id,
    )
    return _save(LlamaForCausalLM, config, tokenizer, folder, seed)


def save_gpt2(folder: Path, tokenizer=None, seed: int = 0) -> Path:
    """Save a random 2-layer GPT-2 with its tokenizer."""
    tokenizer = tokenizer or tiny_tokenizer()
    config = GPT2Config(n_layer=2, n_head=4, n_embd=64, n_positions=128, vocab_size=len(tokenizer), eos_token_id=2)
    return _save(GPT2LMHeadModel, config, tokenizer, folder, seed)


def save_model(folder: Path, model_class: type, config, tokenizer=None) -> Path:
    """Save a random model of any class with the usual tokenizer."""
    return _save(model_class, config, tokenizer or tiny_tokenizer(), folder, 0)


def _save(model_class: type, config, tokenizer, folder: Path, seed: int) -> Path:
    torch.manual_seed(seed)
    model_class(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_gguf(path: Path, family: str = "llama", splitting: str = "smollm") -> Path:
    """Write a random 2-layer llama-layout GGUF with 4-bit matrices and a byte-level tokenizer."""
    from gguf import GGMLQuantizationType, GGUFWriter, quants

    tokenizer = tiny_tokenizer()
    tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    merges = [" ".join(pair) for pair in _merges(tokenizer)]
    writer = GGUFWriter(path, family)
    writer.add_name("tiny")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(16)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitting)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    random = numpy.random.default_rng(0)
    for name, shape in _gguf_shapes(len(tokens)).items():
        values = random.normal(0, 0.05, shape).astype(numpy.float32)
        if len(shape) == 1:
            writer.add_tensor(name, values + 1)
        else:
            kind = GGMLQuantizationType.Q8_0 if name.startswith("token_embd") else GGMLQuantizationType.Q4_1
            writer.add_tensor(name, quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _merges(tokenizer) -> list[list[str]]:
    return json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]


def _gguf_shapes(num_tokens: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (num_tokens, 64), "output_norm.weight": (64,)}
    block = {"attn_norm": (64,), "ffn_norm": (64,), "attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64)}
    block |= {"attn_output": (64, 64), "ffn_gate": (96, 64), "ffn_up": (96, 64), "ffn_down": (64, 96)}
    for index in range(2):
        shapes |= {f"blk.{index}.{part}.weight": shape for part, shape in block.items()}
    return shapes
