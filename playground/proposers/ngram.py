"""Prompt lookup: the n-gram that ends the context, found earlier, predicts what comes next.

Looks in prompt and output alike; the longest n-gram that occurs wins, among its occurrences the
most recent. Deterministic, so q is one-hot and a token is accepted with probability p. The index
grows by the new tokens only: constant time per token. Source: Saxena 2023, prompt lookup decoding.
"""

import torch

from playground.config import SamplingConfig
from playground.proposers.base import Proposal, Proposer


class NgramProposer(Proposer):
    """Looks up the last `ngram_max` … `ngram_min` tokens in what came before."""

    name = "ngram"

    def __init__(self, ngram_min: int, ngram_max: int):
        if not 1 <= ngram_min <= ngram_max:
            raise ValueError("n-gram sizes must satisfy 1 <= smallest <= largest.")
        self.sizes = range(ngram_max, ngram_min - 1, -1)
        self.reset()

    def reset(self) -> None:
        """Empty the index: nothing of the last run may be proposed."""
        self._index: dict[tuple[int, ...], int] = {}  # n-gram → position after its last occurrence
        self._indexed = 0  # n-grams that end at or before this position are in the index

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Copy up to `gamma` tokens from behind the best match.

        >>> NgramProposer(1, 2).propose([7, 8, 9, 5, 7, 8], 3, None, None).ids
        [9, 5, 7]

        A copy that reaches the end of the context goes on with itself: after [1, 2, 1, 2] comes
        1, 2, 1, …
        """
        self._index_to(context, len(context) - 1)
        for size in self.sizes:
            if size < len(context):
                start = self._index.get(tuple(context[-size:]))
                if start is not None:
                    return Proposal(_copy(context, start, gamma))
        return Proposal([])

    def _index_to(self, context: list[int], end: int) -> None:
        for position in range(self._indexed + 1, end + 1):
            for size in self.sizes:
                if size <= position:
                    self._index[tuple(context[position - size : position])] = position
        self._indexed = max(self._indexed, end)


def _copy(context: list[int], start: int, count: int) -> list[int]:
    drafted: list[int] = []
    for position in range(start, start + count):
        drafted.append(context[position] if position < len(context) else drafted[position - len(context)])
    return drafted
