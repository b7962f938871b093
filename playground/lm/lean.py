"""A lean forward pass for the Llama family (Llama, SmolLM, Mistral, Qwen2/2.5, Qwen3).

The weights are those transformers loaded, fused (q, k, v in one product; gate and up in one) and
packed once. Keys and values of a layer live in one preallocated token-major buffer that doubles
when full; a pass writes its rows, rolling back changes nothing but the length. On a CPU the cache
and the attention are float32: PyTorch's bfloat16 attention kernel is several times slower there.
Knows no sampling and no text. Equal to transformers' logits to float32 rounding.
"""

from typing import Any

import torch
import torch.nn.functional as F

from playground.lm.cached import CachedLM, tree_layout
from playground.lm.linear import Linear, Switches, make_linear

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
STATIC_ROPE = ("default", "linear", "llama3", "yarn")  # the angles do not depend on the context length
INITIAL_CAPACITY = 512  # tokens


class _Layer:
    """One transformer block's weights, fused and packed."""

    def __init__(self, block: Any, precision: str, switches: Switches):
        attention, mlp = block.self_attn, block.mlp
        self.qkv = _fuse((attention.q_proj, attention.k_proj, attention.v_proj), precision, switches)
        self.out = _fuse((attention.o_proj,), precision, switches)
        self.gate_up = _fuse((mlp.gate_proj, mlp.up_proj), precision, switches)
        self.down = _fuse((mlp.down_proj,), precision, switches)
        self.norm_in = block.input_layernorm.weight.detach()
        self.norm_mlp = block.post_attention_layernorm.weight.detach()
        self.q_norm = attention.q_norm.weight.detach().float() if hasattr(attention, "q_norm") else None
        self.k_norm = attention.k_norm.weight.detach().float() if hasattr(attention, "k_norm") else None


def _fuse(modules: tuple[Any, ...], precision: str, switches: Switches) -> Linear:
    weight = torch.cat([module.weight.detach() for module in modules])
    biases = [module.bias for module in modules]
    bias = None if biases[0] is None else torch.cat([b.detach() for b in biases])
    return make_linear(weight, bias, precision, switches)


class LeanLM(CachedLM):
    """CachedLM over fused and packed Llama-family weights. See the module's text."""

    def __init__(
        self,
        model: Any,
        precision: str,
        num_tokens: int,
        context_limit: int,
        cache_dtype: torch.dtype | None = None,
    ):
        """Fuse and pack the weights. `cache_dtype` None = float32 on a CPU, the model's own elsewhere."""
        config = model.config
        embedding = model.get_input_embeddings().weight.detach()
        super().__init__(min(num_tokens, config.vocab_size), context_limit, embedding.device)
        self.precision = precision
        self.dtype = embedding.dtype
        self.num_layers = config.num_hidden_layers
        self.hidden_size = config.hidden_size
        self._embedding = embedding
        switches = Switches()
        self._layers = [_Layer(block, precision, switches) for block in model.model.layers]
        self._final_norm = model.model.norm.weight.detach()
        # The output head stays at 8 bits in int4: rounding it to 4 costs most of the agreement.
        head_precision = "int8" if precision == "int4" else precision
        self._head = make_linear(model.get_output_embeddings().weight, None, head_precision, switches)
        self._eps = config.rms_norm_eps
        self._num_heads = config.num_attention_heads
        self._num_kv = config.num_key_value_heads
        self._head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._rotary = model.model.rotary_emb
        self._cache_dtype = cache_dtype or (torch.float32 if self.device.type == "cpu" else self.dtype)
        self._capacity = 0
        self._masks: dict[int, torch.Tensor] = {}
        with torch.inference_mode():
            self._grow(INITIAL_CAPACITY)

    @staticmethod
    def unsupported_reason(model: Any) -> str | None:
        """Why this model needs transformers' own forward pass, or None when the lean one is right."""
        config = model.config
        if config.model_type not in FAMILIES:
            return f"the architecture {config.model_type} is not one of {', '.join(FAMILIES)}"
        if getattr(model, "is_quantized", False):
            return "its weights are quantized by another library"
        if len({parameter.device for parameter in model.parameters()}) > 1:
            return "it is spread over several devices"
        if config.hidden_act != "silu":
            return f"its activation is {config.hidden_act}"
        if any(kind != "full_attention" for kind in getattr(config, "layer_types", None) or ()):
            return "it has layers with sliding or linear attention"
        if getattr(config, "sliding_window", None) and config.model_type == "mistral":
            return "it uses a sliding window"
        rope = (config.rope_parameters or {}).get("rope_type", "default")
        return None if rope in STATIC_ROPE else f"its rotary scaling is {rope}"

    @staticmethod
    def release(model: Any) -> None:
        """Free the weights of `model` that were packed; its embedding, config and class stay usable."""
        kept = model.get_input_embeddings().weight
        for parameter in model.parameters():
            if parameter is not kept:
                parameter.data = parameter.data.new_empty(0)

    def _grow(self, needed: int) -> None:
        """Make room for `needed` tokens, doubling; called inside inference mode."""
        capacity = max(self._capacity, INITIAL_CAPACITY)
        while capacity < needed:
            capacity *= 2
        if capacity == self._capacity:
            return
        shape = (capacity, 2 * self._num_kv, self._head_dim)  # keys, then values
        old, used = getattr(self, "_kv", None), self.length
        self._kv = []
        for index in range(self.num_layers):
            buffer = torch.zeros(shape, dtype=self._cache_dtype, device=self.device)
            if old is not None:
                buffer[:used] = old[index][:used]
                old[index] = None
            self._kv.append(buffer)
        self._capacity = capacity
        self._masks.clear()
        positions = torch.arange(capacity, device=self.device)[None]
        cos, sin = self._rotary(torch.zeros(1, dtype=torch.float32, device=self.device), positions)
        half = self._head_dim // 2
        # x·cos + swap(x)·sin' with sin' negated in the first half is rotate_half without a concatenation
        self._cos = cos[0][:, None].contiguous()  # (capacity, 1, head_dim)
        self._sin = torch.cat((-sin[0][:, :half], sin[0][:, half:]), dim=-1)[:, None].contiguous()

    def _angles(self, rows: Any, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """cos and sin for all heads of one pass, (n, heads + 2·kv, head_dim): values keep cos 1, sin 0."""
        turned = self._num_heads + self._num_kv
        shape = (count, turned + self._num_kv, self._head_dim)
        cos = torch.ones(shape, dtype=self._cache_dtype, device=self.device)
        sin = torch.zeros(shape, dtype=self._cache_dtype, device=self.device)
        cos[:, :turned] = self._cos[rows]
        sin[:, :turned] = self._sin[rows]
        return cos, sin

    def _chain_mask(self, count: int) -> torch.Tensor | None:
        """Additive mask (n, length + n) of a chain, as a view into one buffer per width."""
        if count == 1:
            return None
        mask = self._masks.get(count)
        if mask is None:
            triangle = torch.full((count, count), float("-inf"), device=self.device).triu(1)
            mask = torch.zeros(count, self._capacity + count, dtype=self._cache_dtype, device=self.device)
            mask[:, self._capacity :] = triangle
            self._masks[count] = mask
        return mask[:, self._capacity - self.length :]

    def _forward(self, ids: list[int], parents: list[int] | None, logits: bool) -> torch.Tensor:
        start, end = self.length, self.length + len(ids)
        self._grow(end)
        if parents is None:
            cos, sin = self._angles(slice(start, end), len(ids))
            mask = self._chain_mask(len(ids))
        else:
            depths, visible = tree_layout(parents)
            rows = torch.tensor(depths, device=self.device) + start
            cos, sin = self._angles(rows, len(ids))
            mask = torch.zeros(len(ids), end, dtype=self._cache_dtype, device=self.device)
            mask[:, start:].masked_fill_(~visible.to(self.device), float("-inf"))
        x = self._embedding[torch.tensor(ids, device=self.device)]  # (n, hidden)
        for layer, kv in zip(self._layers, self._kv, strict=True):
            x = self._block(layer, kv, x, cos, sin, mask, start, end)
        if not logits:
            return x.new_zeros(0)
        x = F.rms_norm(x, (self.hidden_size,), self._final_norm, self._eps)
        return self._head(x)[:, : self.vocab_size].float()

    def _block(self, layer, kv, x, cos, sin, mask, start: int, end: int) -> torch.Tensor:
        count, heads, kv_heads = end - start, self._num_heads, self._num_kv
        hidden = F.rms_norm(x, (self.hidden_size,), layer.norm_in, self._eps)
        qkv = layer.qkv(hidden).to(self._cache_dtype).view(count, heads + 2 * kv_heads, self._head_dim)
        if layer.q_norm is not None:
            qkv = self._normed(layer, qkv)
        qkv = torch.addcmul(qkv * cos, qkv.roll(self._head_dim // 2, -1), sin)
        kv[start:end] = qkv[:, heads:]
        seen = kv[:end].transpose(0, 1)[None]  # (1, 2·kv, end, head_dim)
        mixed = F.scaled_dot_product_attention(
            qkv[:, :heads].transpose(0, 1)[None],
            seen[:, :kv_heads],
            seen[:, kv_heads:],
            attn_mask=mask,
            enable_gqa=heads != kv_heads,
        )
        x = x + layer.out(mixed[0].transpose(0, 1).reshape(count, -1).to(self.dtype))
        hidden = F.rms_norm(x, (self.hidden_size,), layer.norm_mlp, self._eps)
        gate, up = layer.gate_up(hidden).chunk(2, dim=-1)
        return x + layer.down(F.silu(gate) * up)

    def _normed(self, layer, qkv: torch.Tensor) -> torch.Tensor:
        """Qwen3: RMS norm of each query and key head before the rotation."""
        heads, turned = self._num_heads, self._num_heads + self._num_kv
        q = F.rms_norm(qkv[:, :heads], (self._head_dim,), layer.q_norm.to(qkv.dtype), self._eps)
        k = F.rms_norm(qkv[:, heads:turned], (self._head_dim,), layer.k_norm.to(qkv.dtype), self._eps)
        return torch.cat((q, k, qkv[:, turned:]), dim=1)

    def _truncate(self, length: int) -> None:
        """Nothing to do: rows past the length are overwritten by the next pass."""

    def _move(self, start: int, indices: list[int]) -> None:
        rows = torch.tensor(indices, device=self.device) + start
        for kv in self._kv:
            kv[start : start + len(indices)] = kv[rows]
