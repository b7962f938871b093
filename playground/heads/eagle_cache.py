"""Keys and values of an EAGLE head, in buffers that double; rolling back changes a length."""

from collections.abc import Sequence

import torch

INITIAL_CAPACITY = 512  # rows


class EagleCache:
    """Rows 0 … length-1 are in use.

    Attributes:
        keys, values: (kv, capacity, head_dim).
        length: rows in use.
    """

    def __init__(self):
        self.length = 0
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def extend(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Add rows (kv, n, d) and return views of all rows in use."""
        end = self.length + keys.shape[-2]
        if self.keys is None or end > self.keys.shape[-2]:
            self._grow(end, keys)
        self.keys[:, self.length : end] = keys
        self.values[:, self.length : end] = values
        self.length = end
        return self.keys[:, :end], self.values[:, :end]

    def _grow(self, needed: int, like: torch.Tensor) -> None:
        capacity = INITIAL_CAPACITY
        while capacity < needed:
            capacity *= 2
        grown = like.new_zeros(2, like.shape[0], capacity, like.shape[-1])
        if self.length:
            grown[0, :, : self.length] = self.keys[:, : self.length]
            grown[1, :, : self.length] = self.values[:, : self.length]
        self.keys, self.values = grown[0], grown[1]

    def rollback(self, length: int) -> None:
        """Keep the first `length` rows (absolute). Raises ValueError when there are fewer."""
        if not 0 <= length <= self.length:
            raise ValueError(f"Cannot roll back to {length}: the cache holds {self.length} rows.")
        self.length = length

    def keep(self, start: int, indices: Sequence[int]) -> None:
        """Of the rows after the first `start`, keep those at `indices` (increasing, relative to `start`)."""
        if list(indices) != list(range(len(indices))):
            rows = torch.tensor(indices, device=self.keys.device) + start
            self.keys[:, start : start + len(indices)] = self.keys[:, rows]
            self.values[:, start : start + len(indices)] = self.values[:, rows]
        self.length = start + len(indices)
