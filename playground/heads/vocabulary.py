"""A reduced draft vocabulary: the ids worth drafting, and the target's output rows for them.

A drafter that cannot name a rare token only loses that one guess, while its output product gets
several times cheaper. Exactness is untouched: the missing ids have draft probability 0.
Source: EAGLE-3 (Li et al. 2025); FR-Spec (Zhao et al. 2025).
"""

from collections.abc import Sequence
from typing import Any

import torch

EYE_ROWS = 1024  # unit vectors per product when output rows are read out of a packed head


class DraftVocabulary:
    """Maps between draft indices 0 … D-1 and the target's token ids.

    Attributes:
        ids: (D,) int64, target id of each draft index, increasing.
        index: (num_tokens,) int64, draft index of each id, -1 = not drafted.
    """

    def __init__(self, ids: torch.Tensor, num_tokens: int):
        self.ids = ids.long()
        self.num_tokens = num_tokens
        self.index = torch.full((num_tokens,), -1, dtype=torch.long, device=ids.device)
        self.index[self.ids] = torch.arange(len(ids), device=ids.device)

    def spread(self, probs: torch.Tensor) -> torch.Tensor:
        """Draft probabilities (…, D) as probabilities over all ids (…, num_tokens)."""
        full = probs.new_zeros(*probs.shape[:-1], self.num_tokens)
        full[..., self.ids] = probs
        return full

    @classmethod
    def most_frequent(cls, counts: torch.Tensor, size: int, always: Sequence[int] = ()) -> "DraftVocabulary":
        """Keep the `size` ids with the highest counts (num_tokens,); ties go to the lower id (a more common merge).

        Args:
            counts: how often each id occurs in the text.
            size: ids to keep.
            always: ids kept whatever their count (end tokens).
        """
        ranked = counts.double().clone()
        ranked[list(always)] = float("inf")
        kept = ranked.argsort(descending=True, stable=True)[: min(size, len(counts))]
        return cls(kept.sort().values, len(counts))


@torch.no_grad()  # not inference mode: training multiplies with these rows
def output_rows(weights: Any, ids: torch.Tensor) -> torch.Tensor:
    """The target's output matrix restricted to `ids`, (D, hidden), in the target's type.

    Args:
        weights: lm.LeanWeights, whose packed head is read out with unit vectors, or a transformers
            model that still has its weights.
        ids: (D,) token ids.
    """
    if hasattr(weights, "get_output_embeddings"):
        return weights.get_output_embeddings().weight.detach()[ids].clone()
    rows = []
    for start in range(0, weights.hidden_size, EYE_ROWS):
        count = min(EYE_ROWS, weights.hidden_size - start)
        unit = torch.zeros(count, weights.hidden_size, dtype=weights.dtype, device=weights.device)
        unit[:, start : start + count].fill_diagonal_(1)
        rows.append(weights.head(unit)[:, ids].T)  # (D, count)
    return torch.cat(rows, dim=1).to(weights.dtype).contiguous()
