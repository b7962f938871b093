"""Prompt lookup: the n-gram that ends the context, found earlier, predicts what comes next.

Looks in prompt and output alike, and behind them in an optional corpus; the longest n-gram that occurs
wins, among its occurrences the most recent. Deterministic, so q is one-hot and a token is accepted with
probability p. The index grows by the new tokens only: constant time per token. Source: Saxena 2023,
prompt lookup decoding.
"""

from collections.abc import Sequence

import torch

from playground.config import SamplingConfig
from playground.proposers.base import Proposal, Proposer


class NgramProposer(Proposer):
    """Looks up the last `ngram_max` … `ngram_min` tokens in what came before."""

    name = "ngram"

    def __init__(self, ngram_min: int, ngram_max: int, corpus: Sequence[int] = ()):
        """Index the corpus.

        Args:
            ngram_min, ngram_max: sizes tried, the largest first.
            corpus: token ids looked up in where prompt and output have no n-gram of the same size.
        """
        if not 1 <= ngram_min <= ngram_max:
            raise ValueError("n-gram sizes must satisfy 1 <= smallest <= largest.")
        self.sizes = range(ngram_max, ngram_min - 1, -1)
        self._corpus = list(corpus)
        self._corpus_index: dict[tuple[int, ...], int] = {}
        self._add(self._corpus_index, self._corpus, range(1, len(self._corpus)))
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
            if size > len(context):
                continue
            last = tuple(context[-size:])
            if (start := self._index.get(last)) is not None:
                return Proposal(_copy(context, start, gamma))
            if (start := self._corpus_index.get(last)) is not None:
                return Proposal(self._corpus[start : start + gamma])
        return Proposal([])

    def _index_to(self, context: list[int], end: int) -> None:
        self._add(self._index, context, range(self._indexed + 1, end + 1))
        self._indexed = max(self._indexed, end)

    def _add(self, index: dict[tuple[int, ...], int], ids: list[int], positions: range) -> None:
        """Index the n-grams that end at `positions`."""
        for position in positions:
            for size in self.sizes:
                if size <= position:
                    index[tuple(ids[position - size : position])] = position


def _copy(context: list[int], start: int, count: int) -> list[int]:
    drafted: list[int] = []
    for position in range(start, start + count):
        drafted.append(context[position] if position < len(context) else drafted[position - len(context)])
    return drafted
