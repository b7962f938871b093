"""A draft model: a few of the target's own layers, its embedding, distilled as a whole.

First layers and the last one are kept: the first build the text's meaning, the last turns it
towards the output rows. The embedding stays the target's, so only the layers are shipped. The
softmax runs over the draft vocabulary and a random sample of the other ids, each standing for
many: full-vocabulary behaviour at a fraction of the cost.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoModelForCausalLM

from playground.heads import save_delta
from playground.heads.draft import DELTA_NAME
from playground.training.batches import Batch
from playground.training.recipes.base import Guess, Recipe, Samples


class Draft(nn.Module):
    """A transformers causal model and the ids it is trained on."""

    def __init__(self, model: nn.Module, draft_ids: torch.Tensor):
        super().__init__()
        self.model = model
        self.register_buffer("draft_ids", draft_ids.clone())


class DraftRecipe(Recipe):
    """Options: num_layers, kept_layers (numbers of the target's layers to start from)."""

    name = "draft"
    learning_rate = 5e-4
    batch_tokens = 3072
    samples_rest = 1024
    chained = True

    @property
    def kept_layers(self) -> tuple[int, ...]:
        """Layers of the target the draft starts from."""
        count = self.target.num_layers
        wanted = min(self.options.get("num_layers", 4), count)
        return tuple(self.options.get("kept_layers") or (*range(wanted - 1), count - 1))

    def make(self, draft_ids: torch.Tensor, samples: Samples) -> nn.Module:
        source = self.target.model
        config = type(source.config).from_dict(source.config.to_dict() | {"num_hidden_layers": len(self.kept_layers)})
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[: len(self.kept_layers)]
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa")
        model.model.embed_tokens.load_state_dict(source.model.embed_tokens.state_dict())
        model.model.norm.load_state_dict(source.model.norm.state_dict())
        for mine, theirs in enumerate(self.kept_layers):
            model.model.layers[mine].load_state_dict(source.model.layers[theirs].state_dict())
        if not config.tie_word_embeddings:
            model.lm_head.load_state_dict(source.lm_head.state_dict())
        model.model.embed_tokens.requires_grad_(False)
        model.lm_head.requires_grad_(False)
        return Draft(model, draft_ids)

    def guesses(self, module: nn.Module, batch: Batch) -> list[Guess]:
        out = module.model.model(input_ids=batch.ids, use_cache=False)
        return [Guess(0, out.last_hidden_state)]  # padding is on the right: causal attention never sees it

    def output(self, module: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
        rows = module.model.lm_head.weight.detach()[: self.target.num_ids]
        return torch.arange(len(rows), device=rows.device), rows

    def save(self, module: nn.Module, folder: Path) -> None:
        save_delta(module.model, module.draft_ids, folder, self.target.name)

    def saved(self, folder: Path) -> dict[str, torch.Tensor] | None:
        """The layers `save` wrote, under the names they have in `Draft`."""
        path = Path(folder) / DELTA_NAME
        if not path.is_file():
            return None
        state = {f"model.{name}": values.float() for name, values in load_file(path).items() if name != "draft_ids"}
        return state | {"draft_ids": load_file(path)["draft_ids"].long()}
