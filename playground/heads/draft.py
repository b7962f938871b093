"""A draft model as the difference to its target: the layers are its own, the embedding is the target's.

What is shipped is an ordinary Llama config and the weights that differ; `assemble` joins them with
the target's embedding to a checkpoint that transformers loads by itself. For a model of 135M
parameters that is 30 MB in place of 90. The config's `kind`, `target` and `draft_ids` (ids worth
drafting, kept with the weights) are extra and harmless to transformers.
"""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from playground.heads.files import CONFIG_NAME, WEIGHTS_NAME, read_config, stored, write_folder

DELTA_NAME = "delta.safetensors"
SHARED = ("model.embed_tokens.weight", "lm_head.weight")
DRAFT_IDS = "draft_ids"
IDS_NAME = "draft_ids.json"  # of an assembled checkpoint; transformers does not look at it


def save_delta(model: nn.Module, draft_ids: torch.Tensor, folder: Path, target: str) -> None:
    """Write what of a draft LlamaForCausalLM its target does not have: config.json and delta.safetensors.

    Raises:
        ValueError: more than 40 MB.
    """
    state = {name: stored(tensor) for name, tensor in model.state_dict().items() if name not in SHARED}
    state[DRAFT_IDS] = stored(draft_ids)
    config = model.config.to_dict() | {"kind": "draft", "target": target, "dtype": "bfloat16"}
    config["architectures"] = [type(model).__name__]
    write_folder(folder, config, state, DELTA_NAME)


def assemble(folder: Path, target: Any, tokenizer: Any, root: Path) -> Path:
    """Join a shipped difference with its target to a checkpoint in `root`, once, and return its folder.

    Args:
        folder: written by `save_delta`.
        target: the loaded target (transformers; its packed copy may have freed all but the embedding).
        tokenizer: the target's tokenizer, copied into the checkpoint.
        root: where to keep the checkpoint; named after the folder and its content.

    Raises:
        ValueError: the difference was made for a target of another shape.
    """
    folder, root = Path(folder), Path(root)
    config = read_config(folder)
    rows = target.get_input_embeddings().weight.detach()
    if list(rows.shape) != [config["vocab_size"], config["hidden_size"]]:
        wanted = f"{config['vocab_size']}×{config['hidden_size']}"
        raise ValueError(f"This draft model needs a target with an embedding of {wanted}, not {list(rows.shape)}.")
    final = assembled_folder(folder, root)
    if (final / WEIGHTS_NAME).is_file():
        return final
    root.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="partial-", dir=root))
    try:
        _write(folder, config, target, tokenizer, work)
        if final.exists():
            shutil.rmtree(final)
        work.replace(final)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return final


def _write(folder: Path, config: dict, target: Any, tokenizer: Any, work: Path) -> None:
    state = load_file(folder / DELTA_NAME)
    (work / IDS_NAME).write_text(json.dumps(state.pop(DRAFT_IDS).tolist()), encoding="utf-8")
    state[SHARED[0]] = stored(target.get_input_embeddings().weight)
    if not config["tie_word_embeddings"]:
        state[SHARED[1]] = stored(target.get_output_embeddings().weight)
    save_file(state, work / WEIGHTS_NAME, metadata={"format": "pt"})
    (work / CONFIG_NAME).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    tokenizer.save_pretrained(work)
    if target.generation_config is not None:
        target.generation_config.save_pretrained(work)


def assembled_folder(folder: Path, root: Path) -> Path:
    """Where `assemble` keeps the checkpoint in `root`: named after the folder and what it holds."""
    digest = hashlib.sha256()
    for name in (CONFIG_NAME, DELTA_NAME):
        digest.update((Path(folder) / name).read_bytes())
    return Path(root) / f"{Path(folder).name}-{digest.hexdigest()[:12]}"
