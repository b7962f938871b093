"""From a checked folder to a model ready to decode: weights, tokenizer, end tokens, limits.

int8 and int4 on a CPU are loaded as bfloat16 (whoever runs the model packs them); nf4, fp4, and
int8 on a GPU, are quantized by bitsandbytes while loading. Penalties a checkpoint asks for in its
generation settings are not applied anywhere, and the notice says so. Knows nothing of names.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playground.registry.checkpoint import Checkpoint
from playground.registry.download import Progress
from playground.registry.errors import ModelError
from playground.registry.hardware import free_memory, largest_device_memory
from playground.registry.precision import memory_bytes

TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|endofturn|>")
DEFAULT_CONTEXT = 2048
BLOCK_SIZE = 64  # weights that share a scale in nf4 and fp4
# Generation settings that change which token comes next, with the value that means "off".
PENALTIES = {
    "repetition_penalty": (None, 1.0),
    "no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1.0),
    "bad_words_ids": (None, []),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
    "sequence_bias": (None, {}),
    "min_new_tokens": (None, 0),
    "min_length": (None, 0),
}


@dataclass
class LoadedModel:
    """A model in memory: evaluation mode, no gradients. `memory_bytes` is of the weights alone.

    `end_ids` end a text; `context_limit` counts prompt and output; `notice` is a sentence for the
    person, or "". A draft model trained here is good at guessing its `draft_ids`.
    """

    name: str
    model: Any
    tokenizer: Any
    config: Any
    precision: str
    device: str
    num_params: int
    memory_bytes: int
    end_ids: tuple[int, ...]
    context_limit: int
    notice: str = ""
    draft_ids: list[int] | None = None


def load_checkpoint(
    checkpoint: Checkpoint, name: str, precision: str, device: str, progress: Progress, num_kept: int = 0
) -> LoadedModel:
    """Load a checked folder at a precision this device runs.

    Args:
        name: the model's name, for sentences.
        precision: one that usable_precision returned.
        device: "cpu" or "cuda".
        progress: called with ("loading", sentence, fraction or None).
        num_kept: weights that stay at 16 bit when quantized; an estimate of memory uses it.

    Raises:
        ModelError: too little memory, or files that cannot be loaded.
    """
    needed = memory_bytes(checkpoint.num_params, _load_format(precision, device), num_kept)
    notices = [_announce(checkpoint, name, needed, device, progress)]
    tokenizer = _load_tokenizer(checkpoint, name)
    progress("loading", f"Loading {name}: {needed / 1e9:.2f} GB of weights", 0.2)
    model = _load_model(checkpoint, name, precision, device, needed)
    _check_blocks(model, name, precision, device)
    progress("loading", f"{name} is loaded", 1.0)
    notices.append(penalty_notice(model.generation_config))
    num_params = model.num_parameters()
    packed_later = (device == "cpu" and precision in ("int8", "int4")) or precision == "fp8"
    return LoadedModel(
        name=name,
        model=model,
        tokenizer=tokenizer,
        config=model.config,
        precision=precision,
        device=device,
        num_params=num_params,
        memory_bytes=memory_bytes(num_params, precision, num_kept, device)
        if packed_later
        else model.get_memory_footprint(return_buffers=False),
        end_ids=end_ids(model, tokenizer),
        context_limit=context_limit(model.config, tokenizer),
        notice=" ".join(notice for notice in notices if notice),
        draft_ids=_draft_ids(checkpoint.folder),
    )


def _draft_ids(folder: Path) -> list[int] | None:
    path = folder / "draft_ids.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _load_format(precision: str, device: str) -> str:
    return "bfloat16" if precision == "fp8" or (device == "cpu" and precision in ("int8", "int4")) else precision


def _announce(checkpoint: Checkpoint, name: str, needed: int, device: str, progress: Progress) -> str:
    """State the memory a load takes, refuse when there is too little, and say what is unusual."""
    notice = ""
    if checkpoint.gguf_file:
        notice = (
            f"{name} is a GGUF file: its {checkpoint.num_bytes / 1e9:.2f} GB are unpacked to about "
            f"{needed / 1e9:.2f} GB in memory."
        )
        progress("loading", notice, None)
    # On a GPU what does not fit goes to main memory.
    free = free_memory(device) + (free_memory("cpu") if device == "cuda" else 0)
    if needed > free:
        message = f"{name} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free."
        raise ModelError(message, "Choose a smaller model or a lower precision.")
    if device == "cuda" and needed > free_memory("cuda"):
        notice += f" Part of {name} does not fit on the GPU and stays in main memory: it will be slow."
    return notice


def _load_tokenizer(checkpoint: Checkpoint, name: str) -> Any:
    from transformers import AutoTokenizer

    kwargs = {"gguf_file": checkpoint.gguf_file} if checkpoint.gguf_file else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            checkpoint.folder, trust_remote_code=False, local_files_only=True, **kwargs
        )
    except Exception as error:  # anything a damaged or missing tokenizer makes transformers raise
        hint = "A model folder needs its tokenizer files (tokenizer.json) too."
        raise ModelError(f"The tokenizer of {name} cannot be loaded: {_first_line(error)}", hint) from error
    if not len(tokenizer):
        raise ModelError(f"{name} has no tokenizer.", "A model folder needs tokenizer.json too.")
    return tokenizer


def _load_model(checkpoint: Checkpoint, name: str, precision: str, device: str, needed: int) -> Any:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # the page and the command line show progress themselves
    kwargs = _load_kwargs(checkpoint, precision, device, needed)
    try:
        model = AutoModelForCausalLM.from_pretrained(checkpoint.folder, **kwargs)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise _out_of_memory(name, needed) from error
    except Exception as error:
        if "alloc" in str(error) and "memory" in str(error):
            raise _out_of_memory(name, needed) from error
        hint = "The files may be damaged or of another version: download them again, or choose another model."
        raise ModelError(f"{name} could not be loaded: {_first_line(error)}", hint) from error
    return model.eval().requires_grad_(False)


def _load_kwargs(checkpoint: Checkpoint, precision: str, device: str, needed: int) -> dict:
    import torch
    from transformers import BitsAndBytesConfig, GgufConfig

    quantized = precision in ("nf4", "fp4") or (precision == "int8" and device == "cuda")
    dtype = torch.bfloat16 if precision in ("fp8", "int8", "int4", "nf4", "fp4") else getattr(torch, precision)
    kwargs = {"dtype": dtype, "trust_remote_code": False, "local_files_only": True}
    if checkpoint.gguf_file:
        kwargs |= {"gguf_file": checkpoint.gguf_file, "quantization_config": GgufConfig(dequantize=True)}
    else:
        kwargs["use_safetensors"] = True
    if quantized and checkpoint.gguf_file:
        message = f"A GGUF file is unpacked to 16 or 32 bit: it cannot be loaded in {precision}."
        raise ModelError(message, "Choose bfloat16, or the original model in place of the GGUF file.")
    if quantized and precision == "int8":
        kwargs["quantization_config"] = BitsAndBytesConfig(load_in_8bit=True)
    elif quantized:
        kwargs["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type=precision, bnb_4bit_compute_dtype=torch.bfloat16
        )
    if device == "cuda":
        kwargs["device_map"] = {"": 0} if needed < 0.9 * largest_device_memory(device) else "auto"
    elif quantized:
        kwargs["device_map"] = {"": "cpu"}
    return kwargs


def _check_blocks(model: Any, name: str, precision: str, device: str) -> None:
    """Refuse 4-bit layers that bitsandbytes' CPU code quantizes wrongly: rows that end inside a block."""
    if device != "cpu" or precision not in ("nf4", "fp4"):
        return
    from bitsandbytes.nn import Linear4bit

    odd = [layer.in_features for layer in model.modules() if isinstance(layer, Linear4bit)]
    odd = [width for width in odd if width % BLOCK_SIZE]
    if odd:
        message = f"{name} cannot run in {precision} on a CPU: a layer is {odd[0]} wide, no multiple of {BLOCK_SIZE}."
        raise ModelError(message, "Choose int8, int4 or bfloat16.")


def _out_of_memory(name: str, needed: int) -> ModelError:
    message = f"There is not enough memory for {name}, which needs about {needed / 1e9:.1f} GB."
    return ModelError(message, "Close other programs, or choose a smaller model or a lower precision.")


def end_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return every token that ends a text, sorted: of generation settings, config, tokenizer, template."""
    text_config = model.config.get_text_config()
    named = [getattr(model.generation_config, "eos_token_id", None), text_config.eos_token_id, tokenizer.eos_token_id]
    found = set()
    for value in named:
        found.update(value if isinstance(value, list | tuple) else [value])
    vocab = tokenizer.get_vocab()
    template = str(getattr(tokenizer, "chat_template", None) or "")
    found.update(vocab[token] for token in TURN_ENDS if token in template and token in vocab)
    return tuple(sorted(int(id) for id in found if id is not None and 0 <= int(id) < len(tokenizer)))


def context_limit(config: Any, tokenizer: Any) -> int:
    """Return how many tokens prompt and output may have together."""
    text_config = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length", "max_seq_len"):
        value = getattr(text_config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    named = tokenizer.model_max_length
    return int(named) if named < 1_000_000 else DEFAULT_CONTEXT


def penalty_notice(generation_config: Any) -> str:
    """Say which penalties of the checkpoint's generation settings are not applied, or return ""."""
    found = []
    for name, off in PENALTIES.items():
        value = getattr(generation_config, name, None)
        if value not in off:
            found.append(f"{name} {value}" if isinstance(value, int | float) else name)
    if not found:
        return ""
    return f"The checkpoint asks for {', '.join(found)}; it is not applied here, to the target or to any draft."


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
