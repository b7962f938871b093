"""EAGLE: one decoder layer that goes on from the target's features, token by token.

Row t takes the embedding of token t+1 (already chosen) and the feature of token t, and gives a
feature for token t+1: it guesses token t+2 through the target's output rows, and is the input of the
next step. Features are normed, every channel about one in size. The first of a chain comes from the
target (`fuse`), the others from this head. Sources: EAGLE (Li et al. 2024, arXiv 2401.15077), EAGLE-3 (Li et al. 2025,
arXiv 2503.01840: several layers fused, trained on its own features).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from playground.heads.base import Head
from playground.heads.eagle_cache import EagleCache
from playground.heads.fusion import Fusion, Norm, ridge, unit_scale

__all__ = ["EagleCache", "EagleHead"]
FROM_LAST_LAYER = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "out": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
    "norm_in": ("input_layernorm",),
    "norm_mlp": ("post_attention_layernorm",),
}


class EagleHead(Head):
    """See the module's text. Shapes may carry leading batch dimensions: (…, n, hidden)."""

    kind = "eagle"

    def __init__(
        self,
        hidden_size: int,
        num_draft_ids: int,
        feature_layers: Sequence[int],
        num_heads: int,
        num_kv: int,
        head_dim: int,
        inner_size: int,
        inv_freq: Sequence[float],
        rope_scale: float = 1.0,
        qkv_bias: bool = False,
        qk_norm: bool = False,
        eps: float = 1e-5,
    ):
        shape = {"feature_layers": list(feature_layers), "num_heads": num_heads, "num_kv": num_kv}
        shape |= {"head_dim": head_dim, "inner_size": inner_size, "inv_freq": list(inv_freq)}
        shape |= {"rope_scale": rope_scale, "qkv_bias": qkv_bias, "qk_norm": qk_norm, "eps": eps}
        super().__init__(hidden_size, num_draft_ids, **shape)
        self.feature_layers, self.rope_scale = tuple(feature_layers), rope_scale
        self.num_heads, self.num_kv, self.head_dim = num_heads, num_kv, head_dim
        self._inv_freq = torch.tensor(inv_freq)  # no buffer: it must stay float32
        self.fusion = Fusion(feature_layers, hidden_size, eps)
        self.norm_embed = Norm(hidden_size, eps=eps)
        self.fc = nn.Linear(2 * hidden_size, hidden_size, bias=False)
        self.norm_in = Norm(hidden_size, eps=eps)
        self.qkv = nn.Linear(hidden_size, (num_heads + 2 * num_kv) * head_dim, bias=qkv_bias)
        self.norm_q = Norm(head_dim, eps=eps) if qk_norm else None
        self.norm_k = Norm(head_dim, eps=eps) if qk_norm else None
        self.out = nn.Linear(num_heads * head_dim, hidden_size, bias=False)
        self.norm_mlp = Norm(hidden_size, eps=eps)
        self.gate_up = nn.Linear(hidden_size, 2 * inner_size, bias=False)
        self.down = nn.Linear(inner_size, hidden_size, bias=False)
        self.norm_feature = Norm(hidden_size, eps=eps)
        self.scale = nn.Parameter(torch.ones(hidden_size))  # feature → the state the output rows expect

    @classmethod
    def from_target(cls, model: Any, draft_ids: torch.Tensor, feature_layers: Sequence[int]) -> "EagleHead":
        """A head whose decoder layer is the last one of a transformers model of the Llama family."""
        config, last = model.config, model.model.layers[-1]
        rotary = model.model.rotary_emb
        head = cls(
            hidden_size=config.hidden_size,
            num_draft_ids=len(draft_ids),
            feature_layers=feature_layers,
            num_heads=config.num_attention_heads,
            num_kv=config.num_key_value_heads,
            head_dim=last.self_attn.head_dim,
            inner_size=config.intermediate_size,
            inv_freq=rotary.inv_freq.tolist(),
            rope_scale=float(rotary.attention_scaling),
            qkv_bias=last.self_attn.q_proj.bias is not None,
            qk_norm=hasattr(last.self_attn, "q_norm"),
            eps=config.rms_norm_eps,
        )
        head.draft_ids.copy_(draft_ids)
        head._copy_layer(last)
        return head

    @torch.no_grad()
    def _copy_layer(self, layer: Any) -> None:
        for mine, theirs in FROM_LAST_LAYER.items():
            modules = [layer.get_submodule(name) for name in theirs]
            getattr(self, mine).weight.copy_(torch.cat([module.weight for module in modules]))
            if getattr(modules[0], "bias", None) is not None:
                getattr(self, mine).bias.copy_(torch.cat([module.bias for module in modules]))
        if self.norm_q is not None:
            self.norm_q.weight.copy_(layer.self_attn.q_norm.weight)
            self.norm_k.weight.copy_(layer.self_attn.k_norm.weight)

    @torch.no_grad()
    def start_from(
        self, embeds: torch.Tensor, hidden: Mapping[int, torch.Tensor], before_last: torch.Tensor, norm: torch.Tensor
    ) -> None:
        """Set the norms from samples, and `fc` by least squares so that the copied layer gets what it is used to.

        Args:
            embeds: (n, hidden) embeddings of the tokens after each sample.
            hidden: samples (n, hidden) per layer in `feature_layers`.
            before_last: (n, hidden) what the target's last layer read one token later.
            norm: (hidden,) weight of the target's final norm.
        """
        self.fusion.calibrate(hidden)
        self.norm_embed.weight.copy_(unit_scale(embeds.float(), self.norm_embed.eps))
        self.norm_feature.weight.copy_(self.fusion.norms[-1].weight)
        self.scale.copy_(norm.float() / self.norm_feature.weight)
        x = torch.cat((self.norm_embed(embeds.float()), self.fuse(hidden).float()), dim=-1)  # (n, 2·hidden)
        self.fc.weight.copy_(ridge(x, before_last.float()))

    def fuse(self, hidden: Mapping[int, torch.Tensor]) -> torch.Tensor:
        """The target's hidden states per layer, (…, n, hidden), as features for the first step."""
        return self.fusion(hidden)

    def forward(
        self,
        embeds: torch.Tensor,
        features: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        cache: EagleCache | None = None,
    ) -> torch.Tensor:
        """Run n rows after what the cache holds, and add them to it.

        Args:
            embeds: (…, n, hidden) target embeddings of the tokens after each row's feature.
            features: (…, n, hidden) from `fuse`, or what this method returned for the row before.
            positions: (n,) position of each row in the text (a chain counts on; siblings share one).
            mask: bool (n, past + n), True = seen; None = causal.
            cache: None = no past, nothing kept. With one, no leading dimensions.

        Returns:
            (…, n, hidden) features; `guess` turns them into draft logits.
        """
        x = self.mixed(embeds, features)
        q, k, v = self.heads(x, positions)
        if cache is not None:
            k, v = cache.extend(k, v)
        if mask is None:
            past, count = k.shape[-2] - q.shape[-2], q.shape[-2]
            mask = torch.ones(count, past + count, dtype=torch.bool, device=q.device).tril(past) if count > 1 else None
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=self.num_heads != self.num_kv)
        return self.finished(x, attended)

    def guess(self, features: torch.Tensor) -> torch.Tensor:
        """Features (…, hidden) → draft logits (…, D), float32."""
        return self.logits(self.state(features))

    def state(self, features: torch.Tensor) -> torch.Tensor:
        """Features as states for the target's output rows, same shape."""
        return features * self.scale

    def mixed(self, embeds: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Token and feature as one residual stream, (…, n, hidden)."""
        return self.fc(torch.cat((self.norm_embed(embeds.to(features.dtype)), features), dim=-1))

    def heads(self, x: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries (…, heads, n, d), keys and values (…, kv, n, d), rotated by `positions` (n,)."""
        qkv = self.qkv(self.norm_in(x)).unflatten(-1, (-1, self.head_dim)).transpose(-2, -3)
        q, k, v = qkv.split((self.num_heads, self.num_kv, self.num_kv), dim=-3)
        if self.norm_q is not None:
            q, k = self.norm_q(q), self.norm_k(k)
        angles = positions[:, None].float() * self._inv_freq.to(positions.device)  # (n, d/2)
        cos, sin = (torch.cat((f, f), dim=-1).to(q.dtype) for f in (angles.cos(), angles.sin()))
        return self._rotated(q, cos, sin), self._rotated(k, cos, sin), v

    def _rotated(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2, dim=-1)
        return (x * cos + torch.cat((-high, low), dim=-1) * sin) * self.rope_scale

    def finished(self, x: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """The rest of the layer: attended (…, heads, n, d) → features (…, n, hidden)."""
        x = x + self.out(attended.transpose(-2, -3).flatten(-2))
        gate, up = self.gate_up(self.norm_mlp(x)).chunk(2, dim=-1)
        return self.norm_feature(x + self.down(F.silu(gate) * up))
