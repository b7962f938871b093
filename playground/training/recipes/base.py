"""What a recipe says: features it needs, module it makes, states it compares, files it writes.

Alignment, the same for all: row t of the features knows tokens 0 … t, and the target's row t is the
distribution of token t+1. States with shift s at row t guess what the target says at row t+s.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from playground.heads import output_rows, save_head
from playground.heads.files import WEIGHTS_NAME
from playground.lm import LeanWeights
from playground.training.batches import Batch

DEPTH_DECAY = 0.8  # a later depth is reached only when the ones before were accepted


@dataclass(slots=True)
class Target:
    """The model to draft for.

    Attributes:
        name: manifest id, folder or Hub id.
        model: transformers, with all its weights. weights: the same, packed for fast passes.
        tokenizer, end_ids: as loaded.
    """

    name: str
    model: Any
    weights: LeanWeights
    tokenizer: Any
    end_ids: tuple[int, ...]

    @property
    def num_layers(self) -> int:
        return len(self.weights.layers)

    @property
    def num_ids(self) -> int:
        """Ids both the tokenizer and the model know."""
        return min(len(self.tokenizer), self.weights.vocab_size)


@dataclass(slots=True)
class Guess:
    """States (B, T - shift, hidden) that guess `shift` rows ahead; `label` names a variant (an exit depth)."""

    shift: int
    states: torch.Tensor
    weight: float = 1.0
    label: str = ""


@dataclass(slots=True)
class Samples:
    """A few thousand tokens of the training text to start norms from: (n, hidden) each.

    Attributes:
        hidden: layer → states of token t. embeds: embeddings of token t+1.
        before_last: what the target's last layer read for token t+1.
    """

    hidden: dict[int, torch.Tensor]
    embeds: torch.Tensor
    before_last: torch.Tensor


class Recipe(ABC):
    """One kind of drafter."""

    name = ""
    learning_rate = 1e-3
    batch_tokens = 3072
    samples_rest = 0  # tokens outside the draft vocabulary drawn into each softmax (full-vocabulary drafters)
    chained = False  # True: one step that feeds itself; False: shifts are the depths

    def __init__(self, target: Target, options: Mapping[str, Any] | None = None):
        """`options`: hyper-parameters that differ from the defaults."""
        self.target, self.options = target, dict(options or {})

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers whose hidden states are read."""
        return ()

    @abstractmethod
    def make(self, draft_ids: torch.Tensor, samples: Samples) -> nn.Module:
        """A module at its starting point, float32."""

    @abstractmethod
    def guesses(self, module: nn.Module, batch: Batch) -> list[Guess]:
        """Run the drafter over a batch as it is used: depth by depth."""

    def output(self, module: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids (D,) it can guess and their output rows (D, hidden), as it is used."""
        ids = module.draft_ids
        return ids, output_rows(self.target.weights, ids)

    def save(self, module: nn.Module, folder: Path) -> None:
        """Write the weights to ship."""
        save_head(module, folder, self.target.name)

    def saved(self, folder: Path) -> dict[str, torch.Tensor] | None:
        """The state of a module that `save` wrote before, float32; None where there is none."""
        path = Path(folder) / WEIGHTS_NAME
        if not path.is_file():
            return None
        state = load_file(path)
        return {name: values.float() if values.is_floating_point() else values for name, values in state.items()}

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """The target's embedding of ids (…) → (…, hidden)."""
        return self.target.weights.embedding[ids]
