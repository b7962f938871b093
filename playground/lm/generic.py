"""Any causal model of transformers behind CachedLM, on cache layers of our own.

transformers' DynamicCache concatenates keys and values at every step; `BufferLayer` writes into
buffers that double, and forgets by changing a length. Written against transformers 5 (`cache=`).
Refuses models whose cache cannot be rolled back: recurrent, hybrid, sliding-window ones.
"""

from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache

from playground.lm.cached import CachedLM, tree_layout

INITIAL_CAPACITY = 512  # tokens


class BufferLayer(CacheLayerMixin):
    """Keys and values of one layer, (1, heads, capacity, head_dim), used up to `used`."""

    is_sliding = False
    is_croppable = True

    def __init__(self):
        super().__init__()
        self.used = 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = (self._empty(states, INITIAL_CAPACITY) for states in (key_states, value_states))
        self.is_initialized = True

    @staticmethod
    def _empty(states: torch.Tensor, capacity: int) -> torch.Tensor:
        return states.new_zeros(*states.shape[:2], capacity, states.shape[3])

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Write the new rows and return views of all rows in use."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.used + key_states.shape[2]
        capacity = self.keys.shape[2]
        if end > capacity:
            while capacity < end:
                capacity *= 2
            self.keys, self.values = self._grown(self.keys, capacity), self._grown(self.values, capacity)
        self.keys[:, :, self.used : end] = key_states
        self.values[:, :, self.used : end] = value_states
        self.used = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def _grown(self, buffer: torch.Tensor, capacity: int) -> torch.Tensor:
        grown = self._empty(buffer, capacity)
        grown[:, :, : self.used] = buffer[:, :, : self.used]
        return grown

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.used + query_length, 0

    def get_seq_length(self) -> int:
        return self.used

    def get_max_length(self) -> int:
        return -1


class TransformersLM(CachedLM):
    """CachedLM over a transformers model's own forward pass."""

    def __init__(self, model: Any, num_tokens: int, context_limit: int):
        super().__init__(min(num_tokens, model.config.vocab_size), context_limit, model.device)
        layers = DynamicCache(config=model.config).layers
        bad = [layer for layer in layers if not layer.is_croppable or getattr(layer, "is_sliding", False)]
        if bad:
            raise ValueError(f"The cache of this model cannot be rolled back ({type(bad[0]).__name__}).")
        self._model = model
        self.num_layers = model.config.num_hidden_layers
        self.dtype = model.dtype
        self._cache = Cache(layer_class_to_replicate=BufferLayer)
        self._watch()

    def _watch(self) -> None:
        """Keep the hidden states asked for as they pass by: the input of each layer, the output of the last."""

        def note(number: int, states: torch.Tensor) -> None:
            if number in self.taps:
                self.hidden[number] = states[0]

        blocks = next(
            m for m in self._model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == self.num_layers
        )
        for number, block in enumerate(blocks):
            block.register_forward_pre_hook(
                lambda _, args, kwargs, number=number: note(number, args[0] if args else kwargs["hidden_states"]),
                with_kwargs=True,
            )
        blocks[-1].register_forward_hook(
            lambda _, args, out: note(self.num_layers, out[0] if isinstance(out, tuple) else out)
        )

    def _forward(self, ids: list[int], parents: list[int] | None, logits: bool) -> torch.Tensor:
        start = self.length
        options: dict[str, Any] = {"logits_to_keep": 0 if logits else 1}
        positions = torch.arange(start, start + len(ids), device=self.device)
        if parents is not None:
            depths, visible = tree_layout(parents)
            positions = torch.tensor(depths, device=self.device) + start
            mask = torch.ones(len(ids), start + len(ids), dtype=torch.bool, device=self.device)
            mask[:, start:] = visible.to(self.device)
            options["attention_mask"] = mask[None, None]  # (1, 1, n, length + n)
        inputs = torch.tensor([ids], device=self.device)
        try:
            out = self._model(
                input_ids=inputs, position_ids=positions[None], cache=self._cache, use_cache=True, **options
            )
        except BaseException:
            self._truncate(start)  # a failed pass must not leave rows of some layers behind
            raise
        return out.logits[0, :, : self.vocab_size].float() if logits else out.logits.new_zeros(0)

    def _truncate(self, length: int) -> None:
        for layer in self._cache.layers:
            layer.used = min(layer.used, length)

    def _move(self, start: int, indices: list[int]) -> None:
        rows = torch.tensor(indices, device=self.device) + start
        for layer in self._cache.layers:
            for buffer in (layer.keys, layer.values):
                buffer[:, :, start : start + len(indices)] = buffer[:, :, rows]
