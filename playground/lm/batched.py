"""Many texts at once, one token each per pass: for writing text, where only the total rate counts.

Each of the slots has a length of its own, so a finished text is replaced by a new one at once and no
slot waits. Knows nothing of sampling or of what is written. Runs on the lean weights.
"""

import torch
import torch.nn.functional as F

from playground.lm.weights import LayerWeights, LeanWeights

MASKED = float("-inf")


class BatchedLM:
    """Attributes:
    lengths: (slots,) tokens each slot holds.
    """

    def __init__(self, weights: LeanWeights, num_slots: int, capacity: int):
        """Args:
        weights: may be shared with other caches.
        num_slots: texts at once.
        capacity: longest text in tokens.
        """
        self.weights, self.num_slots, self.capacity = weights, num_slots, capacity
        device = weights.device
        self.lengths = torch.zeros(num_slots, dtype=torch.long, device=device)
        dtype = torch.float32 if device.type == "cpu" else weights.dtype  # PyTorch's bf16 CPU attention is slow
        shape = (num_slots, 2 * weights.num_kv, capacity, weights.head_dim)  # keys, then values
        self._kv = [torch.zeros(shape, dtype=dtype, device=device) for _ in weights.layers]
        positions = torch.arange(capacity, device=device)[None]
        cos, sin = weights.rotary(torch.zeros(1, dtype=torch.float32, device=device), positions)
        half = weights.head_dim // 2
        self._cos, self._sin = cos[0].to(dtype), torch.cat((-sin[0][:, :half], sin[0][:, half:]), dim=-1).to(dtype)
        self._slots = torch.arange(num_slots, device=device)

    def clear(self, slot: int) -> None:
        """Start a new text in `slot`."""
        self.lengths[slot] = 0

    @torch.inference_mode()
    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Add one token to every slot; every slot must have room.

        Args:
            ids: (slots,) token ids.

        Returns:
            (slots, vocab) logits of the token after each, in the type of the weights.
        """
        end = int(self.lengths.max()) + 1
        seen = torch.arange(end, device=ids.device)[None] <= self.lengths[:, None]
        mask = torch.zeros(seen.shape, dtype=self._cos.dtype, device=ids.device).masked_fill_(~seen, MASKED)

        def attend(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
            num_kv = self.weights.num_kv
            grouped = q.unflatten(1, (num_kv, -1))  # (slots, kv, heads per kv, head_dim)
            keys, values = kv[:, :num_kv, :end], kv[:, num_kv:, :end]
            return F.scaled_dot_product_attention(grouped, keys, values, attn_mask=mask[:, None, None]).flatten(1)

        x = self._run(ids, self._slots, self.lengths, attend)
        self.lengths += 1
        return self._logits(x)

    def _run(self, ids: torch.Tensor, slots: torch.Tensor, positions: torch.Tensor, attend) -> torch.Tensor:
        """All layers over n rows, row i being token `ids[i]` at `positions[i]` of slot `slots[i]`.

        Args:
            attend: q (n, heads, head_dim) and one layer's cache, these rows in it → (n, heads·head_dim).

        Returns:
            (n, hidden) states before the final norm.
        """
        x = self.weights.embedding[ids]
        cos, sin = self._cos[positions][:, None], self._sin[positions][:, None]  # (n, 1, head_dim)
        for layer, kv in zip(self.weights.layers, self._kv, strict=True):
            x = self._block(layer, kv, x, cos, sin, (slots, positions), attend)
        return x

    def _logits(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.weights
        return weights.head(F.rms_norm(x, (weights.hidden_size,), weights.final_norm, weights.eps))

    def _block(self, layer: LayerWeights, kv: torch.Tensor, x, cos, sin, rows: tuple, attend) -> torch.Tensor:
        weights = self.weights
        heads, kv_heads, head_dim = weights.num_heads, weights.num_kv, weights.head_dim
        hidden = F.rms_norm(x, (weights.hidden_size,), layer.norm_in, weights.eps)
        qkv = layer.qkv(hidden).to(kv.dtype).unflatten(-1, (-1, head_dim))  # (n, heads + 2·kv, head_dim)
        q, k, v = qkv.split((heads, kv_heads, kv_heads), dim=1)
        if layer.q_norm is not None:
            q = F.rms_norm(q, (head_dim,), layer.q_norm.to(q.dtype), weights.eps)
            k = F.rms_norm(k, (head_dim,), layer.k_norm.to(k.dtype), weights.eps)
        q, k = (part * cos + part.roll(head_dim // 2, -1) * sin for part in (q, k))
        slots, positions = rows
        kv[slots, :, positions] = torch.cat((k, v), dim=1)
        x = x + layer.out(attend(q, kv).to(weights.dtype))
        hidden = F.rms_norm(x, (weights.hidden_size,), layer.norm_mlp, weights.eps)
        gate, up = layer.gate_up(hidden).chunk(2, dim=-1)
        return x + layer.down(F.silu(gate) * up)
