"""Many sequences at once, several tokens each per pass: what a server's verifying pass is.

Every slot has a length of its own and is given as many tokens as it has: one and its draft, or none. The
matrix products run over all rows together, so that the weights are read once for the whole batch; attention
is each sequence's own, padded to the widest. A rejected draft is a change of that slot's length. Equal to
each sequence decoded alone, to float32 rounding. Knows nothing of sampling or proposers.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from playground.lm.batched import MASKED, BatchedLM
from playground.lm.cached import PREFILL_CHUNK


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
        """How the rows of one pass attend: as a block (slots, widest), of which the rows are taken out again."""
        num_kv, widest = self.weights.num_kv, max(counts)
        group = self.weights.num_heads // num_kv
        busy = [slot for slot, count in enumerate(counts) if count]
        first, last = busy[0], busy[-1] + 1  # the cache of a range of slots is a view, not a copy
        end = int(lengths[first:last].max())
        newest = self.lengths[first:last, None] + torch.arange(widest, device=slots.device)  # (slots, widest)
        seen = torch.arange(end, device=slots.device) <= newest[..., None]
        mask = torch.zeros(seen.shape, dtype=self._cos.dtype, device=slots.device).masked_fill_(~seen, MASKED)
        mask = mask.repeat(1, group, 1)[:, None]  # (slots, 1, group·widest, end)

        def attend(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
            block = q.new_zeros(last - first, widest, *q.shape[1:])
            block[slots - first, places] = q
            rows = block.transpose(1, 2).reshape(last - first, num_kv, group * widest, -1)
            keys, values = kv[first:last, :num_kv, :end], kv[first:last, num_kv:, :end]
            mixed = F.scaled_dot_product_attention(rows, keys, values, attn_mask=mask)
            mixed = mixed.reshape(last - first, num_kv * group, widest, -1)
            return mixed[slots - first, :, places].flatten(1)

        return attend
