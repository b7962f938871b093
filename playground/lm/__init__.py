"""A language model with a cache that can be rolled back: the only place that touches model weights.

`wrap(model, …)` picks the backend: the lean decoder for the Llama family, transformers' own forward
for everything else. Both give the same `CachedLM`: extend, rollback, keep.

    cached.py       CachedLM: ids in the cache, positions, masks, prefill in chunks
    lean.py         Llama-family forward pass, with caches of its own
    weights.py      the fused, packed weights it runs on
    generic.py      any other causal model, through transformers, on our own cache layers
    linear.py       matrix products: plain, packed for oneDNN, int8, int4
    fp8.py          the same in 8-bit floating point, for GPUs
"""

from typing import Any

import torch

from playground.lm.cached import CachedLM
from playground.lm.generic import TransformersLM
from playground.lm.lean import LeanLM
from playground.lm.weights import LeanWeights, release, unsupported_reason

__all__ = [
    "CachedLM",
    "LeanLM",
    "LeanWeights",
    "TransformersLM",
    "another_cache",
    "release",
    "unsupported_reason",
    "wrap",
]


def wrap(
    model: Any,
    precision: str,
    num_tokens: int,
    context_limit: int,
    consume: bool = False,
    head_ids: torch.Tensor | None = None,
) -> CachedLM:
    """Put a loaded transformers causal model behind `CachedLM`.

    Args:
        model: a transformers causal language model in eval mode.
        precision: one of config.PRECISIONS; int8 and int4 are packed here on a CPU, fp8 on a GPU.
        num_tokens: tokens the tokenizer knows; logits of padded rows beyond it are cut off.
        context_limit: longest context in tokens.
        consume: free the weights of `model` as they are packed; it can then no longer run by itself.
        head_ids: (D,) ids to cut the output head to, for a draft; only the lean decoder does, and says so.

    Raises:
        ValueError: packed precision asked for an architecture the lean decoder does not know.
    """
    reason = unsupported_reason(model)
    if reason is None:
        return LeanLM(LeanWeights(model, precision, consume, head_ids), num_tokens, context_limit)
    if precision in ("int8", "int4", "fp8") and not getattr(model, "is_quantized", False):
        raise ValueError(f"{precision} on this device needs the lean decoder, which cannot run this model: {reason}.")
    return TransformersLM(model, num_tokens, context_limit)


def another_cache(lm: CachedLM) -> CachedLM:
    """Return an empty cache over the same weights: the model once in memory, decoding two texts.

    Raises:
        TypeError: a backend that cannot share its weights.
    """
    if isinstance(lm, LeanLM):
        return LeanLM(lm.weights, lm.vocab_size, lm.context_limit)
    if isinstance(lm, TransformersLM):
        return TransformersLM(lm._model, lm.vocab_size, lm.context_limit)
    raise TypeError(f"{type(lm).__name__} cannot share its weights.")
