"""Early-exit adapters: each learns the target's distribution from the hidden state after its k layers."""

import torch
from torch import nn

from playground.heads import ExitAdapters
from playground.training.batches import Batch
from playground.training.recipes.base import Guess, Recipe, Samples


class EarlyExitRecipe(Recipe):
    """Options: exit_layers, inner_size, num_blocks."""

    name = "early-exit"
    learning_rate = 1e-3
    batch_tokens = 3072
    chained = True

    @property
    def layers(self) -> tuple[int, ...]:
        count = self.target.num_layers
        chosen = self.options.get("exit_layers") or (count // 7, count // 4, 2 * count // 5)
        return tuple(sorted({min(max(1, layer), count - 1) for layer in chosen}))

    def make(self, draft_ids: torch.Tensor, samples: Samples) -> nn.Module:
        weights = self.target.weights
        module = ExitAdapters(
            hidden_size=weights.hidden_size,
            num_draft_ids=len(draft_ids),
            exit_layers=self.layers,
            inner_size=self.options.get("inner_size", 2 * weights.hidden_size),
            num_blocks=self.options.get("num_blocks", 2),
            eps=weights.eps,
        )
        module.draft_ids.copy_(draft_ids)
        for layer in self.layers:
            final = samples.hidden[self.target.num_layers]
            module.adapters[str(layer)].start_from(weights.final_norm, samples.hidden[layer], final)
        return module

    def guesses(self, module: nn.Module, batch: Batch) -> list[Guess]:
        return [Guess(0, module(batch.hidden[layer], layer), label=f"k={layer}") for layer in self.layers]
