"""A lean forward pass for the Llama family (Llama, SmolLM, Mistral, Qwen2/2.5, Qwen3).

Runs on fused, packed weights (weights.py). Keys and values of a layer live in one preallocated
head-major buffer that doubles when full; a pass writes its rows, rolling back changes nothing but
the length. Queries that share a key head go through attention as rows of one head, so that each key
is read once. On a CPU the cache and the attention are float32: PyTorch's bfloat16 attention kernel is
several times slower there. A pass can stop after the first k layers (`extend_partly`), and the next
`extend` over the same tokens goes on from there. On a GPU, passes of up to 17 tokens are replayed as
CUDA graphs (graphs.py). Equal to transformers' logits to float32 rounding.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from playground.lm.cached import CachedLM, tree_layout
from playground.lm.graphs import StaticInputs, StaticPasses
from playground.lm.weights import LayerWeights, LeanWeights

INITIAL_CAPACITY = 512  # tokens
MAX_STATIC_WIDTH = 17  # tokens in the widest pass a chain can ask for
MAX_GROUPED_WIDTH = 64  # wider passes have work enough per key, and their masks would be large
MIN_GROUPED_CONTEXT = 1024  # for one token; measured


class LeanLM(CachedLM):
    """CachedLM over LeanWeights. See the module's text."""

    def __init__(
        self,
        weights: LeanWeights,
        num_tokens: int,
        context_limit: int,
        cache_dtype: torch.dtype | None = None,
        static: bool | None = None,
    ):
        """Make an empty cache.

        Args:
            weights: shared with any number of other caches.
            num_tokens: tokens the tokenizer knows.
            context_limit: longest context in tokens.
            cache_dtype: None = float32 on a CPU, the type of the weights elsewhere.
            static: fixed-shape passes for narrow widths; None = on a GPU only.
        """
        super().__init__(min(num_tokens, weights.vocab_size), context_limit, weights.device)
        self.head_ids = weights.head_ids
        self.weights = weights
        self.precision = weights.precision
        self.num_layers = len(weights.layers)
        self._cache_dtype = cache_dtype or (torch.float32 if self.device.type == "cpu" else weights.dtype)
        self._kv: list[torch.Tensor] = []
        self._capacity = 0
        self._masks: dict[int, torch.Tensor] = {}
        self._partial: tuple[int, list[int], torch.Tensor] | None = None  # layers done, ids, hidden (n, hidden)
        self._hidden_of: dict[tuple, dict[int, torch.Tensor]] = {}  # hidden states by recorded pass
        static = self.device.type == "cuda" if static is None else static
        self.static = StaticPasses(self._fixed, self._cache_dtype, self.device, capture=True) if static else None
        with torch.inference_mode():
            self._grow(INITIAL_CAPACITY)

    @property
    def cache_bytes(self) -> int:
        """Memory of keys and values, room for growth included."""
        return sum(buffer.nbytes for buffer in self._kv)

    @torch.inference_mode()
    def extend_partly(self, ids: Sequence[int], num_layers: int) -> torch.Tensor:
        """Run `ids` through the first layers only; they do not count as cached until `extend` completes them.

        Further calls go on after the tokens of the last one. `extend` reuses the work when its ids start
        with these; rolling back discards it.

        Returns:
            (n, hidden) the hidden states after `num_layers` layers.

        Raises:
            ValueError: no ids, or a number of layers outside 1 … L - 1, or another one than before.
        """
        if not ids or not 1 <= num_layers < self.num_layers:
            raise ValueError(f"extend_partly needs tokens and 1 to {self.num_layers - 1} layers, not {num_layers}.")
        done = self._partial
        if done is not None and done[0] != num_layers:
            raise ValueError(f"{done[0]} layers were begun; {num_layers} cannot follow before extend or rollback.")
        start = self.length + (len(done[1]) if done else 0)
        self._grow(start + len(ids))
        x = self._chain(self._embed(ids), start, 0, num_layers)
        if done is None:
            self._partial = num_layers, list(ids), x
        else:
            self._partial = num_layers, [*done[1], *ids], torch.cat((done[2], x))
        return x

    def _grow(self, needed: int) -> None:
        """Make room for `needed` tokens, doubling; called inside inference mode."""
        capacity = max(self._capacity, INITIAL_CAPACITY)
        while capacity < needed:
            capacity *= 2
        if capacity == self._capacity:
            return
        weights, old, used = self.weights, self._kv, self._capacity
        shape = (2 * weights.num_kv, capacity, weights.head_dim)  # keys, then values
        grown = []  # all or nothing: without memory for it the old buffers stay in use
        for index in range(self.num_layers):
            buffer = torch.zeros(shape, dtype=self._cache_dtype, device=self.device)
            if old:
                buffer[:, :used] = old[index]
            grown.append(buffer)
        self._kv = grown
        self._capacity = capacity
        self._masks.clear()
        positions = torch.arange(capacity, device=self.device)[None]
        cos, sin = weights.rotary(torch.zeros(1, dtype=torch.float32, device=self.device), positions)
        half = weights.head_dim // 2
        # x·cos + swap(x)·sin' with sin' negated in the first half is rotate_half without a concatenation
        self._cos = cos[0][:, None].contiguous()  # (capacity, 1, head_dim)
        self._sin = torch.cat((-sin[0][:, :half], sin[0][:, half:]), dim=-1)[:, None].contiguous()

    def _angles(self, rows: slice | torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin for all heads of one pass, (n, heads + 2·kv, head_dim): values keep cos 1, sin 0."""
        turned = self.weights.num_heads + self.weights.num_kv
        shape = (count, turned + self.weights.num_kv, self.weights.head_dim)
        cos = torch.ones(shape, dtype=self._cache_dtype, device=self.device)
        sin = torch.zeros(shape, dtype=self._cache_dtype, device=self.device)
        cos[:, :turned] = self._cos[rows]
        sin[:, :turned] = self._sin[rows]
        return cos, sin

    def _chain_mask(self, start: int, count: int) -> torch.Tensor | None:
        """Additive mask (n, start + n) of a chain, as a view into one buffer per width."""
        if count == 1:
            return None
        mask = self._masks.get(count)
        if mask is None:
            triangle = torch.full((count, count), float("-inf"), device=self.device).triu(1)
            mask = torch.zeros(count, self._capacity + count, dtype=self._cache_dtype, device=self.device)
            mask[:, self._capacity :] = triangle
            self._masks[count] = mask
        return mask[:, self._capacity - start :]

    def _embed(self, ids: Sequence[int]) -> torch.Tensor:
        return self.weights.embedding[torch.tensor(ids, device=self.device)]  # (n, hidden)

    def _chain(self, x: torch.Tensor, start: int, first: int, last: int) -> torch.Tensor:
        """Layers first … last - 1 over a chain of tokens at positions start, start + 1, …"""
        rows = slice(start, start + len(x))
        return self._run(x, rows, rows, rows.stop, self._chain_mask(start, len(x)), first, last)

    def _run(self, x, positions, rows, end: int, mask, first: int = 0, last: int | None = None) -> torch.Tensor:
        """Layers first … last - 1: rotate by `positions`, write cache rows `rows`, look at the first `end` rows."""
        cos, sin = self._angles(positions, len(x))
        group = self._group(len(x), end)
        if mask is not None and group > 1:
            mask = mask.repeat(group, 1)
        for index in range(first, self.num_layers if last is None else last):
            if index in self.taps:
                self.hidden[index] = x
            x = self._block(self.weights.layers[index], self._kv[index], x, cos, sin, mask, rows, end, group)
        return x

    def _group(self, count: int, end: int) -> int:
        """Query heads that go through attention as one: all that share keys, where that is faster."""
        shared = self.weights.num_heads // self.weights.num_kv
        wide, short = count > MAX_GROUPED_WIDTH, count == 1 and end < MIN_GROUPED_CONTEXT
        return 1 if wide or short else shared

    def _fixed(self, inputs: StaticInputs) -> torch.Tensor:
        """A pass of fixed shape, for graphs.py: the whole cache buffer is looked at, the mask decides."""
        x = self._run(self.weights.embedding[inputs.ids], inputs.positions, inputs.rows, self._capacity, inputs.mask)
        if self.num_layers in self.taps:
            self.hidden[self.num_layers] = x
        return self._logits(x)

    def _forward(self, ids: list[int], parents: list[int] | None, logits: bool) -> torch.Tensor:
        start, partial, self._partial = self.length, self._partial, None
        self._grow(start + len(ids))
        if self.static is not None and partial is None and logits and len(ids) <= MAX_STATIC_WIDTH:
            return self._replay(ids, parents, start)
        if parents is not None:
            x = self._tree(ids, parents, start)
        elif partial is not None and ids[: len(partial[1])] == partial[1]:
            x = self._complete(partial, ids, start)
        else:
            x = self._chain(self._embed(ids), start, 0, self.num_layers)
        if self.num_layers in self.taps:
            self.hidden[self.num_layers] = x
        return self._logits(x) if logits else x.new_zeros(0)

    def _replay(self, ids: list[int], parents: list[int] | None, start: int) -> torch.Tensor:
        """A narrow pass as one of fixed shape; hidden states of one recording stay with it."""
        depths, visible = tree_layout(range(-1, len(ids) - 1) if parents is None else parents)
        self.hidden = self._hidden_of.setdefault((len(ids), self._capacity, self.taps), {})
        return self.static.run(ids, depths, visible, start, self._capacity, self.taps)

    def _tree(self, ids: list[int], parents: list[int], start: int) -> torch.Tensor:
        depths, visible = tree_layout(parents)
        positions, end = torch.tensor(depths, device=self.device) + start, start + len(ids)
        mask = torch.zeros(len(ids), end, dtype=self._cache_dtype, device=self.device)
        mask[:, start:].masked_fill_(~visible.to(self.device), float("-inf"))
        return self._run(self._embed(ids), positions, slice(start, end), end, mask)

    def _complete(self, partial: tuple[int, list[int], torch.Tensor], ids: list[int], start: int) -> torch.Tensor:
        """Go on from a partial pass: first layers for the tokens it lacks, then the others for all."""
        num_layers, done, x = partial
        if len(ids) > len(done):
            rest = self._chain(self._embed(ids[len(done) :]), start + len(done), 0, num_layers)
            x = torch.cat((x, rest))
        return self._chain(x, start, num_layers, self.num_layers)

    def _logits(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.weights
        x = F.rms_norm(x, (weights.hidden_size,), weights.final_norm, weights.eps)
        return weights.head(x)[:, : self.vocab_size].float()

    def _block(self, layer: LayerWeights, kv: torch.Tensor, x, cos, sin, mask, rows, end: int, group: int):
        weights, count = self.weights, len(x)
        heads, kv_heads, head_dim = weights.num_heads, weights.num_kv, weights.head_dim
        hidden = F.rms_norm(x, (weights.hidden_size,), layer.norm_in, weights.eps)
        qkv = layer.qkv(hidden).to(self._cache_dtype).view(count, heads + 2 * kv_heads, head_dim)
        if layer.q_norm is not None:
            qkv = self._normed(layer, qkv)
        qkv = torch.addcmul(qkv * cos, qkv.roll(head_dim // 2, -1), sin)
        kv[:, rows] = qkv[:, heads:].transpose(0, 1)
        seen = kv[None, :, :end]  # (1, 2·kv, end, head_dim)
        mixed = F.scaled_dot_product_attention(
            qkv[:, :heads].transpose(0, 1).reshape(1, heads // group, group * count, head_dim),
            seen[:, :kv_heads],
            seen[:, kv_heads:],
            attn_mask=mask,
            enable_gqa=heads // group != kv_heads,
        )
        mixed = mixed.reshape(heads, count, head_dim).transpose(0, 1).reshape(count, -1)
        x = x + layer.out(mixed.to(weights.dtype))
        hidden = F.rms_norm(x, (weights.hidden_size,), layer.norm_mlp, weights.eps)
        gate, up = layer.gate_up(hidden).chunk(2, dim=-1)
        return x + layer.down(F.silu(gate) * up)

    def _normed(self, layer: LayerWeights, qkv: torch.Tensor) -> torch.Tensor:
        """Qwen3: RMS norm of each query and key head before the rotation."""
        heads, turned = self.weights.num_heads, self.weights.num_heads + self.weights.num_kv
        shape, eps = (self.weights.head_dim,), self.weights.eps
        q = F.rms_norm(qkv[:, :heads], shape, layer.q_norm.to(qkv.dtype), eps)
        k = F.rms_norm(qkv[:, heads:turned], shape, layer.k_norm.to(qkv.dtype), eps)
        return torch.cat((q, k, qkv[:, turned:]), dim=1)

    def _truncate(self, length: int) -> None:
        """Rows past the length are overwritten by the next pass; only a partial pass is dropped."""
        self._partial = None

    def _move(self, start: int, indices: list[int]) -> None:
        rows = torch.tensor(indices, device=self.device) + start
        for kv in self._kv:
            kv[:, start : start + len(indices)] = kv[:, rows]
