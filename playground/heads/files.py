"""Save and load a head: a folder with config.json and model.safetensors.

`kind` in the config names the class; its other fields are the class's arguments. Weights are
stored in bfloat16. Loading binds what belongs to the target. Knows no particular head.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from playground.lm.linear import PackedLinear

CONFIG_NAME = "config.json"
WEIGHTS_NAME = "model.safetensors"
MAX_FILE_BYTES = 40_000_000


def read_config(folder: Path) -> dict:
    """The config of a folder of weights. Raises ValueError when there is none."""
    try:
        config = json.loads((Path(folder) / CONFIG_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder} holds no readable {CONFIG_NAME}.") from error
    if "kind" not in config:
        raise ValueError(f"{folder}/{CONFIG_NAME} does not say what kind of head it is.")
    return config


def save_head(module: nn.Module, folder: Path, target: str) -> None:
    """Write a head (`kind`, `config`, persistent state) to `folder`, in bfloat16.

    Raises:
        ValueError: the file would exceed 40 MB.
    """
    state = {name: stored(tensor) for name, tensor in module.state_dict().items()}
    config = {"kind": module.kind, "target": target} | module.config
    write_folder(folder, config, state, WEIGHTS_NAME)


def write_folder(folder: Path, config: dict, state: dict[str, torch.Tensor], weights_name: str) -> None:
    """Write config and tensors; each file appears whole or not at all."""
    size = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    if size > MAX_FILE_BYTES:
        raise ValueError(f"The weights take {size / 1e6:.1f} MB; at most {MAX_FILE_BYTES / 1e6:.0f} MB are shipped.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{weights_name}.partial"
    save_file(state, partial, metadata={"format": "pt"})
    partial.chmod(0o644)  # safetensors writes for the owner only
    partial.replace(folder / weights_name)
    (folder / CONFIG_NAME).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as it is kept on disk: weights bfloat16, ids int32, tables of angles float32."""
    kinds = {torch.int64: torch.int32, torch.float64: torch.float32}
    dtype = torch.bfloat16 if tensor.is_floating_point() and tensor.dim() else kinds.get(tensor.dtype, tensor.dtype)
    return tensor.detach().to("cpu", dtype).contiguous().clone()


def load_head(folder: Path, weights: Any, dtype: torch.dtype | None = None, packed: bool = True) -> nn.Module:
    """Load a head for inference and bind the target's output rows and embedding to it.

    Args:
        folder: written by `save_head`.
        weights: the target's lm.LeanWeights, or its transformers model.
        dtype: of the weights; None = the target's.
        packed: reorder matrices for oneDNN on a CPU (about twice as fast; no longer trainable).

    Raises:
        ValueError: no such head, or one made for a target of another width.
    """
    from playground.heads import KINDS
    from playground.heads.vocabulary import output_rows

    config = read_config(folder)
    kind = config.pop("kind")
    config.pop("target", None)
    if kind not in KINDS:
        raise ValueError(f"{folder} holds a {kind}, which is no head; heads are {', '.join(KINDS)}.")
    source = weights.config if hasattr(weights, "get_output_embeddings") else weights
    if config["hidden_size"] != source.hidden_size:
        raise ValueError(
            f"This head was trained for a target {config['hidden_size']} wide; this one is {source.hidden_size} wide."
        )
    module = KINDS[kind](**config)
    module.load_state_dict(load_file(Path(folder) / WEIGHTS_NAME))
    module = module.to(weights.device, dtype or weights.dtype).eval().requires_grad_(False)
    module.bind(output_rows(weights, module.draft_ids).to(dtype or weights.dtype))
    return pack(module) if packed and weights.device.type == "cpu" else module


class Packed(nn.Module):
    """A linear layer whose weight is reordered for oneDNN; bound output rows become one too."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None):
        super().__init__()
        self._product = PackedLinear(weight.detach(), bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._product(x)


def pack(module: nn.Module) -> nn.Module:
    """Replace linear layers and bound rows of a head by packed ones, where this processor has them."""
    if not PackedLinear.available(next(module.parameters()).dtype):
        return module
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, Packed(child.weight, child.bias))
    return module
