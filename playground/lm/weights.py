"""The weights of a Llama-family model, fused and packed once; any number of caches may share them.

Fused: q, k and v in one product; gate and up in one. Also says which transformers models fit this
shape. Knows nothing of caches or positions.
"""

from typing import Any

import torch

from playground.config import WIDE_COPY_MAX_PARAMS
from playground.lm.linear import Linear, Switches, make_linear

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
STATIC_ROPE = ("default", "linear", "llama3", "yarn")  # the angles do not depend on the context length


class LayerWeights:
    """One transformer block."""

    def __init__(self, block: Any, precision: str, switches: Switches | None):
        attention, mlp = block.self_attn, block.mlp
        self.qkv = _fuse((attention.q_proj, attention.k_proj, attention.v_proj), precision, switches)
        self.out = _fuse((attention.o_proj,), precision, switches)
        self.gate_up = _fuse((mlp.gate_proj, mlp.up_proj), precision, switches)
        self.down = _fuse((mlp.down_proj,), precision, switches)
        self.norm_in = block.input_layernorm.weight.detach()
        self.norm_mlp = block.post_attention_layernorm.weight.detach()
        self.q_norm = attention.q_norm.weight.detach().float() if hasattr(attention, "q_norm") else None
        self.k_norm = attention.k_norm.weight.detach().float() if hasattr(attention, "k_norm") else None


class LeanWeights:
    """A whole model: embedding, blocks, final norm, output head, and the numbers a pass needs."""

    def __init__(self, model: Any, precision: str, consume: bool = False, head_ids: torch.Tensor | None = None):
        """Fuse and pack. `consume` frees each block of `model` once it is packed, so memory peaks lower.

        `head_ids` (D,) cuts the output head to the rows of these ids: logits are theirs alone.
        """
        config = model.config
        self.precision = precision
        self.embedding = model.get_input_embeddings().weight.detach()
        small = sum(parameter.numel() for parameter in model.parameters()) <= WIDE_COPY_MAX_PARAMS
        switches = Switches() if small else None
        self.layers = []
        for block in model.model.layers:
            self.layers.append(LayerWeights(block, precision, switches))
            if consume:
                _free(block, kept=())
        self.final_norm = model.model.norm.weight.detach()
        # The output head stays wider: rounding it costs most of the agreement.
        head_precision = {"int4": "int8", "fp8": "bfloat16"}.get(precision, precision)
        rows = model.get_output_embeddings().weight
        self.head_ids = None if head_ids is None else head_ids.to(rows.device)
        rows = rows if self.head_ids is None else rows.detach()[self.head_ids]
        self.head: Linear = make_linear(rows, None, head_precision, switches)
        if consume:
            release(model)
        self.rotary = model.model.rotary_emb
        self.eps = config.rms_norm_eps
        self.vocab_size = config.vocab_size
        self.hidden_size = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.num_kv = config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads

    @property
    def dtype(self) -> torch.dtype:
        """Type of the activations."""
        return self.embedding.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.device


def _fuse(modules: tuple[Any, ...], precision: str, switches: Switches | None) -> Linear:
    weight = torch.cat([module.weight.detach() for module in modules])
    biases = [module.bias for module in modules]
    bias = None if biases[0] is None else torch.cat([b.detach() for b in biases])
    return make_linear(weight, bias, precision, switches)


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


def release(model: Any) -> None:
    """Free the weights of `model` that were packed; its embedding, config and class stay usable."""
    _free(model, kept=(model.get_input_embeddings().weight,))


def _free(module: Any, kept: tuple[torch.Tensor, ...]) -> None:
    for parameter in module.parameters():
        if not any(parameter is item for item in kept):
            parameter.data = parameter.data.new_empty(0)
