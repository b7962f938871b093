"""Turns the bundled target's GGUF file into a folder that transformers loads by itself.

Reads the file once with the `gguf` library: 4-bit blocks become bfloat16 safetensors, the metadata
becomes config, tokenizer and chat template. transformers' own conversion gives the same weights
but reads the file four times and takes about four times as long. Only the llama layout with a
"smollm" byte-level tokenizer is known here; any other file raises ValueError.
"""

import errno
from pathlib import Path
from typing import Any

from playground.registry.download import Progress, disk_full

WEIGHT_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
END_OF_TURN, END_OF_TEXT = "<|im_end|>", "<|endoftext|>"


def convert(gguf_file: Path, folder: Path, progress: Progress) -> None:
    """Write config, weights, tokenizer and generation settings of `gguf_file` into `folder`.

    Args:
        gguf_file: a llama-family GGUF with a "smollm" tokenizer and tied embeddings.
        folder: an existing empty folder; what is in it after an exception is incomplete.
        progress: called with ("converting", sentence, fraction).

    Raises:
        ValueError: the file is of another family.
        OSError: reading or writing failed.
    """
    from gguf import GGUFReader
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    progress("converting", "Reading the model file", 0.0)
    reader = GGUFReader(gguf_file)
    family = (_value(reader, "general.architecture"), _value(reader, "tokenizer.ggml.pre"))
    if family != ("llama", "smollm") or any(tensor.name == "output.weight" for tensor in reader.tensors):
        raise ValueError(f"Only the bundled llama-family file can be converted, not {family[0]}/{family[1]}.")
    config = _config(reader)
    config.save_pretrained(folder)
    _write_tokenizer(reader, config.max_position_embeddings, folder)
    _write_generation_config(reader, folder)
    weights = {}
    for index, tensor in enumerate(reader.tensors):
        if index % 8 == 0:
            progress("converting", "Unpacking 4-bit weights to bfloat16", 0.3 + 0.6 * index / len(reader.tensors))
        weights[_weight_name(tensor.name)] = _weight(tensor, config)
    progress("converting", "Writing the converted weights", 0.9)
    try:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:  # its only way to report a failed write
        raise OSError(errno.ENOSPC if disk_full(str(error)) else errno.EIO, str(error)) from error


def _value(reader: Any, key: str) -> Any:
    field = reader.get_field(key)
    return None if field is None else field.contents()


def _config(reader: Any) -> Any:
    from transformers import LlamaConfig

    def read(key: str) -> Any:
        return _value(reader, f"llama.{key}")

    config = LlamaConfig(
        vocab_size=read("vocab_size"),
        hidden_size=read("embedding_length"),
        intermediate_size=read("feed_forward_length"),
        num_hidden_layers=read("block_count"),
        num_attention_heads=read("attention.head_count"),
        num_key_value_heads=read("attention.head_count_kv"),
        head_dim=read("rope.dimension_count"),
        max_position_embeddings=read("context_length"),
        rms_norm_eps=read("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": read("rope.freq_base")},
        tie_word_embeddings=True,
        bos_token_id=_value(reader, "tokenizer.ggml.bos_token_id"),
        eos_token_id=_value(reader, "tokenizer.ggml.eos_token_id"),
        pad_token_id=_value(reader, "tokenizer.ggml.padding_token_id"),
        dtype="bfloat16",
    )
    config.architectures = ["LlamaForCausalLM"]
    return config


def _weight_name(gguf_name: str) -> str:
    """Rename: "blk.3.attn_q.weight" → "model.layers.3.self_attn.q_proj.weight"."""
    *block, part, kind = gguf_name.split(".")
    if part not in WEIGHT_NAMES or kind != "weight":
        raise ValueError(f"The model file holds a tensor that is not known: {gguf_name}.")
    prefix = f"model.layers.{block[1]}." if block else ""
    return f"{prefix}{WEIGHT_NAMES[part]}.weight"


def _weight(tensor: Any, config: Any) -> Any:
    """Unpack one tensor to bfloat16, undoing GGUF's own order of rotary rows in q and k."""
    import numpy
    import torch
    from gguf import dequantize

    unpacked = numpy.array(dequantize(tensor.data, tensor.tensor_type))  # a copy: the file's own pages are read-only
    weight = torch.from_numpy(unpacked).to(torch.bfloat16)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    num_heads = heads.get(tensor.name.split(".")[-2])
    if num_heads is not None:
        half = weight.shape[0] // num_heads // 2
        weight = weight.reshape(num_heads, half, 2, -1).transpose(1, 2).reshape(weight.shape)
    return weight.contiguous()


def _write_tokenizer(reader: Any, context_length: int, folder: Path) -> None:
    """Build the byte-level BPE tokenizer from the file's vocabulary and merges.

    Every digit is split off before anything else ("smollm" splitting rule); without it "\\n\\n1." and
    runs of spaces before a number come out as other tokens than the model was trained on.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = _value(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in _value(reader, "tokenizer.ggml.merges")]
    backend = Tokenizer(models.BPE(vocab={token: id for id, token in enumerate(tokens)}, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    backend.decoder = decoders.ByteLevel()
    control = [
        token for token, kind in zip(tokens, _value(reader, "tokenizer.ggml.token_type"), strict=True) if kind == 3
    ]
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=tokens[_value(reader, "tokenizer.ggml.bos_token_id")],
        eos_token=tokens[_value(reader, "tokenizer.ggml.eos_token_id")],
        pad_token=tokens[_value(reader, "tokenizer.ggml.padding_token_id")],
        unk_token=tokens[_value(reader, "tokenizer.ggml.unknown_token_id")],
        model_max_length=context_length,
        clean_up_tokenization_spaces=False,
        chat_template=_value(reader, "tokenizer.chat_template"),
    )
    tokenizer.save_pretrained(folder)


def _write_generation_config(reader: Any, folder: Path) -> None:
    """Write both end tokens: a chat turn ends with <|im_end|>, a plain text with <|endoftext|>.

    The file names the first only. With the chat template off the model ends a document with the
    second, and what follows would be an unrelated document.
    """
    from transformers import GenerationConfig

    tokens = _value(reader, "tokenizer.ggml.tokens")
    GenerationConfig(
        bos_token_id=_value(reader, "tokenizer.ggml.bos_token_id"),
        eos_token_id=[tokens.index(END_OF_TURN), tokens.index(END_OF_TEXT)],
        pad_token_id=_value(reader, "tokenizer.ggml.padding_token_id"),
    ).save_pretrained(folder)
