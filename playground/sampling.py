"""Logits to probabilities, and a draw from them: one function for target and draft alike.

Greedy is not a second code path: temperature 0 (or top-k 1) gives a one-hot distribution. Knows no
models. Filters as in transformers: temperature, then top-k, then top-p, renormalised after.
"""

import torch

from playground.config import SamplingConfig

_NUCLEUS_FIRST = 1024  # likeliest tokens searched before sorting a whole vocabulary for top-p


def is_greedy(sampling: SamplingConfig) -> bool:
    """Whether the distribution is one-hot whatever the logits are."""
    return sampling.temperature == 0 or sampling.top_k == 1


def to_probs(logits: torch.Tensor, sampling: SamplingConfig) -> torch.Tensor:
    """Turn logits into the distribution a token is really drawn from.

    Args:
        logits: (n, vocab) float32.
        sampling: temperature, top-k, top-p.

    Returns:
        (n, vocab) float32, each row summing to 1.
    """
    if is_greedy(sampling):
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    # Shifting by the maximum first keeps tiny temperatures from overflowing.
    scaled = (logits - logits.amax(-1, keepdim=True)) / max(sampling.temperature, 1e-30)
    if 0 < sampling.top_k < logits.shape[-1]:
        floor = scaled.topk(sampling.top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < floor, float("-inf"))
    probs = torch.softmax(scaled, dim=-1)
    return probs if sampling.top_p >= 1 else _nucleus(probs, sampling.top_p)


def _nucleus(probs: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keep the smallest set of likeliest tokens whose mass reaches top_p (at least one)."""
    for count in (_NUCLEUS_FIRST, probs.shape[-1]):
        values, indices = probs.topk(min(count, probs.shape[-1]), dim=-1)
        before = values.cumsum(-1) - values  # mass of the likelier tokens
        if bool((before[:, -1] + values[:, -1] >= top_p).all()):
            break
    kept = values.masked_fill(before >= top_p, 0.0)
    out = torch.zeros_like(probs).scatter_(-1, indices, kept)
    return out / out.sum(-1, keepdim=True)


def draw(probs: torch.Tensor, rng: torch.Generator) -> int:
    """Draw one token id from a (possibly unnormalised) distribution (vocab,), by its cumulative sum.

    One uniform number per draw; a token of probability 0 is never drawn.
    """
    cumulative = probs.to(torch.float64).cumsum(-1)
    u = torch.rand(1, generator=rng, device=probs.device, dtype=torch.float64) * cumulative[-1]
    index = int(torch.searchsorted(cumulative, u, right=True))
    return min(index, int(probs.nonzero()[-1])) if index >= probs.shape[-1] else index
