"""Medusa heads: every head learns the target's distribution one token further on. Source: Cai et al. 2024."""

import torch
from torch import nn

from playground.heads import MedusaHeads
from playground.training.batches import Batch
from playground.training.recipes.base import DEPTH_DECAY, Guess, Recipe, Samples


class MedusaRecipe(Recipe):
    """Options: num_heads, inner_size, feature_layers."""

    name = "medusa"
    learning_rate = 6e-4
    batch_tokens = 3072

    @property
    def layers(self) -> tuple[int, ...]:
        count = self.target.num_layers
        return tuple(self.options.get("feature_layers") or (2 * count // 3, count))

    def make(self, draft_ids: torch.Tensor, samples: Samples) -> nn.Module:
        weights = self.target.weights
        module = MedusaHeads(
            hidden_size=weights.hidden_size,
            num_draft_ids=len(draft_ids),
            num_heads=self.options.get("num_heads", 4),
            inner_size=self.options.get("inner_size", 2 * weights.hidden_size),
            feature_layers=self.layers,
            eps=weights.eps,
        )
        module.draft_ids.copy_(draft_ids)
        final = samples.hidden[self.target.num_layers]
        module.start_from(weights.final_norm, samples.hidden, final, samples.embeds)
        return module

    def guesses(self, module: nn.Module, batch: Batch) -> list[Guess]:
        length = batch.ids.shape[1]
        known = {layer: states[:, :-1] for layer, states in batch.hidden.items()}
        states = module(known, self.embed(batch.ids[:, 1:]))  # (B, T - 1, K, hidden)
        heads = range(1, module.num_heads + 1)
        return [Guess(i, states[:, : length - i, i - 1], DEPTH_DECAY ** (i - 1)) for i in heads]
