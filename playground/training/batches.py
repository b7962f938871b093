"""Texts and their features as padded batches, in an order that depends on seed and epoch alone."""

import random
from dataclasses import dataclass

import torch

from playground.training.features import FeatureStore

PROMPT_WEIGHT = 0.3  # of tokens before the answer: the target's own words too, but not what is drafted
POOL = 32  # batches whose texts are sorted by length together, so that little is padding


@dataclass(slots=True)
class Batch:
    """B texts padded to T tokens; row t knows what follows token t.

    Attributes:
        ids: (B, T) int64.
        weight: (B, T) how much the guess of token t+1 counts; 0 on padding and on the last token.
        top_ids, top_probs: (B, T, K) the target's likeliest next tokens.
        hidden: layer → (B, T, hidden) bfloat16.
    """

    ids: torch.Tensor
    weight: torch.Tensor
    top_ids: torch.Tensor
    top_probs: torch.Tensor
    hidden: dict[int, torch.Tensor]

    @property
    def num_tokens(self) -> int:
        """Tokens that count."""
        return int((self.weight > 0).sum())


class Batches:
    """Draws batches from a FeatureStore."""

    def __init__(self, store: FeatureStore, batch_tokens: int, seed: int, device: torch.device | str = "cpu"):
        self._store, self._batch_tokens, self._seed, self._device = store, batch_tokens, seed, device

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of one epoch as lists of text numbers."""
        rng = random.Random(f"{self._seed}/{number}")
        lengths = [len(text.ids) for text in self._store.texts]
        order = list(range(len(lengths)))
        rng.shuffle(order)
        per_batch = max(1, round(self._batch_tokens * len(lengths) / max(1, sum(lengths))))
        batches = []
        for start in range(0, len(order), POOL * per_batch):
            pool = sorted(order[start : start + POOL * per_batch], key=lambda i: lengths[i])
            batches += [pool[i : i + per_batch] for i in range(0, len(pool), per_batch)]
        rng.shuffle(batches)
        return batches

    def load(self, numbers: list[int]) -> Batch:
        """Read the texts of one batch."""
        texts = [self._store.texts[number] for number in numbers]
        found = [self._store.read(number) for number in numbers]
        width = max(len(text.ids) for text in texts)
        ids = torch.zeros(len(texts), width, dtype=torch.long)
        weight = torch.zeros(len(texts), width)
        for row, text in enumerate(texts):
            count, start = len(text.ids), max(0, text.answer_start - 1)
            ids[row, :count] = torch.tensor(text.ids)
            weight[row, :start] = PROMPT_WEIGHT
            weight[row, start : count - 1] = 1.0
        padded = {name: self._padded([item[name] for item in found], width) for name in found[0]}
        hidden = {layer: padded[f"hidden-{layer}"] for layer in self._store.layers}
        ids, weight = ids.to(self._device), weight.to(self._device)
        return Batch(ids, weight, padded["top_ids"], padded["top_probs"], hidden)

    def _padded(self, parts: list[torch.Tensor], width: int) -> torch.Tensor:
        out = parts[0].new_zeros(len(parts), width, parts[0].shape[1])
        for row, part in enumerate(parts):
            out[row, : len(part)] = part
        return out.to(self._device)
