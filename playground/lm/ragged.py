"""Many sequences at once, several tokens each per pass: what a server's verifying pass is.

Every slot has a length of its own and is given as many tokens as it has: one and its draft, or none. The
matrix products run over all rows together, so that the weights are read once for the whole batch; attention
is each sequence's own, padded where drafts are of unequal length. A rejected draft is a change of that slot's
length. Equal to each sequence decoded alone, to float32 rounding. Knows nothing of sampling or proposers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from playground.lm.batched import MASKED, BatchedLM
from playground.lm.cached import PREFILL_CHUNK

FULL = 0.5  # of a block's rows beyond the first of each slot: emptier ones are cut up


class RaggedLM(BatchedLM):
    """BatchedLM whose passes may be ragged. A slot's first `lengths[slot]` cache rows are its tokens."""

    @torch.inference_mode()
    def extend(self, ids: Sequence[Sequence[int]], logits: bool = True) -> torch.Tensor:
        """Add tokens to the slots in one pass.

        Args:
            ids: for every slot its n_s new tokens, possibly none; at least one in all.
            logits: False skips the output head and returns an empty tensor.

        Returns:
            (n, vocab) float32 logits of the token after each, n = Σ n_s rows in the order of the slots.

        Raises:
            ValueError: no tokens at all, not one list per slot, or a slot without room.
        """
        counts = [len(tokens) for tokens in ids]
        if len(counts) != self.num_slots or not any(counts):
            raise ValueError(f"extend needs tokens, and one list for each of {self.num_slots} slots.")
        device = self.lengths.device
        tokens = torch.tensor([token for row in ids for token in row], device=device)
        slots = torch.tensor([slot for slot, count in enumerate(counts) for _ in range(count)], device=device)
        places = torch.tensor([place for count in counts for place in range(count)], device=device)
        lengths = self.lengths + torch.tensor(counts, device=device)
        if int(lengths.max()) > self.capacity:
            raise ValueError(f"A slot holds at most {self.capacity} tokens.")
        x = self._run(tokens, slots, self.lengths[slots] + places, self._attention(counts, slots, places, lengths))
        self.lengths.copy_(lengths)
        return self._logits(x).float() if logits else x.new_zeros(0)

    def prefill(self, slot: int, ids: Sequence[int]) -> None:
        """Start a new text in `slot`: cut like LeanLM's prefill, so that both round alike."""
        self.clear(slot)
        for start in range(0, len(ids), PREFILL_CHUNK):
            rows: list[Sequence[int]] = [()] * self.num_slots
            rows[slot] = ids[start : start + PREFILL_CHUNK]
            self.extend(rows, logits=False)

    def rollback(self, slot: int, length: int) -> None:
        """Forget all tokens of a slot after its first `length`."""
        self.lengths[slot] = length

    def _attention(self, counts: list[int], slots: torch.Tensor, places: torch.Tensor, lengths: torch.Tensor):
        """How the rows of one pass attend: block by block."""
        blocks = [self._block_of(*shape, slots, places, lengths) for shape in _shapes(counts)]

        def attend(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
            if len(blocks) == 1:
                return self._mix(blocks[0], q, kv)
            mixed = q.new_empty(len(q), q.shape[1] * q.shape[2])
            for block in blocks:
                mixed[block.rows] = self._mix(block, q[block.rows], kv)
            return mixed

        return attend

    def _block_of(self, first: int, last: int, place: int, width: int, slots, places, lengths) -> "_Block":
        """The rows of slots first … last - 1 from a place on, and what each may see."""
        rows = ((slots >= first) & (slots < last) & (places >= place) & (places < place + width)).nonzero()[:, 0]
        end = int(lengths[first:last].max())
        newest = self.lengths[first:last, None] + place + torch.arange(width, device=slots.device)  # (slots, width)
        seen = torch.arange(end, device=slots.device) <= newest[..., None]
        mask = torch.zeros(seen.shape, dtype=self._cos.dtype, device=slots.device).masked_fill_(~seen, MASKED)
        mask = mask.repeat(1, self.weights.num_heads // self.weights.num_kv, 1)[:, None]  # (slots, 1, group·width, end)
        return _Block(rows, slice(first, last), slots[rows] - first, places[rows] - place, width, mask)

    def _mix(self, block: "_Block", q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        """Attention of one block: q (n, heads, head_dim) → (n, heads·head_dim)."""
        num_kv, end = self.weights.num_kv, block.mask.shape[-1]
        num_slots, (heads, head_dim) = len(block.mask), q.shape[1:]
        padded = q.new_zeros(num_slots, block.width, heads, head_dim)
        padded[block.slots, block.places] = q
        rows = padded.transpose(1, 2).reshape(num_slots, num_kv, -1, head_dim)  # (slots, kv, group·width, head_dim)
        keys, values = kv[block.range, :num_kv, :end], kv[block.range, num_kv:, :end]
        mixed = F.scaled_dot_product_attention(rows, keys, values, attn_mask=block.mask)
        return mixed.reshape(num_slots, heads, block.width, head_dim)[block.slots, :, block.places].flatten(1)


@dataclass(slots=True)
class _Block:
    """Rows that attend in one call, padded to (slots, width)."""

    rows: torch.Tensor  # (n,) which rows of the pass
    range: slice  # of slots: a view of the cache, not a copy
    slots: torch.Tensor  # (n,) in that range
    places: torch.Tensor  # (n,) in the width
    width: int
    mask: torch.Tensor  # (slots, 1, group·width, end)


def _shapes(counts: list[int]) -> list[tuple[int, int, int, int]]:
    """Blocks (first slot, last slot + 1, first place, width) that cover all rows with little padding.

    One block where it is mostly full; else the first row of every slot as one, and the further rows of each slot.

    >>> _shapes([2, 3, 3]), _shapes([1, 1, 4, 1])
    ([(0, 3, 0, 3)], [(0, 4, 0, 1), (2, 3, 1, 3)])
    """
    busy = [slot for slot, count in enumerate(counts) if count]
    first, last, widest = busy[0], busy[-1] + 1, max(counts)
    if sum(counts) - len(busy) >= FULL * (widest - 1) * (last - first):
        return [(first, last, 0, widest)]
    further = [(slot, slot + 1, 1, counts[slot] - 1) for slot in busy if counts[slot] > 1]
    return [(first, last, 0, 1), *further]
