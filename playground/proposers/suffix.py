"""Suffix decoding: the longest run of tokens that ends the context and occurred before predicts the next.

Where n-gram lookup copies from one place, this counts: among all that ever followed the match, in prompt,
output and an optional corpus, the most frequent token is drafted, the most recent among equals. Drafting
goes on while the product of the count shares stays above a minimum, and no further than the match was
long. Deterministic, so q is one-hot. Counts live in a suffix trie of bounded depth: one token costs at
most `max_match` + 1 steps, however long the context. Source: Oliaro et al. 2024, SuffixDecoding.
"""

from collections.abc import Callable, Iterator, Sequence

import torch

from playground.config import RANGES, SamplingConfig
from playground.proposers.base import Proposal, Proposer

MAX_MATCH = 16  # tokens compared: longer matches hardly ever decide otherwise
TOKEN_BITS = 32


class SuffixTrie:
    """What followed every run of up to `max_match` tokens of a growing text, with counts.

    >>> trie = SuffixTrie(3)
    >>> for token in [1, 2, 7, 1, 2, 8, 1, 2, 8, 1, 2]: trie.append(token)
    >>> trie.longest(trie.ends)[0], trie.likeliest(trie.ends[1])
    (3, (8, 0.6666666666666666))
    """

    ROOT = 0

    def __init__(self, max_match: int = MAX_MATCH):
        self.max_match = max_match
        self.ends = [self.ROOT]  # nodes of the suffixes of the text by length, 0 … max_match tokens
        self._children: dict[int, int] = {}  # node and token in one number → node
        self._token = [-1]  # by node: its last token,
        self._count = [0]  # how often it occurred,
        self._followed = [0]  # how often something followed it,
        self._best = [self.ROOT]  # and its most frequent child, the latest among equals

    def append(self, token: int) -> None:
        """Add the next token of the text."""
        grown = [self._count_child(node, token) for node in self.ends]
        self.ends = [self.ROOT, *grown[: self.max_match]]

    def restart(self) -> None:
        """Begin another text: what is counted stays."""
        self.ends = [self.ROOT]

    def follow(self, ends: list[int], token: int) -> list[int]:
        """The nodes of the suffixes of a text that goes on with `token`, as far as they occurred."""
        found = [self.ROOT]
        for node in ends[: self.max_match]:
            child = self._children.get(node << TOKEN_BITS | token)
            if child is None:  # no longer suffix occurred either
                break
            found.append(child)
        return found

    def longest(self, ends: list[int]) -> tuple[int, int]:
        """Length and node of the longest suffix that something has followed; length 0 = none."""
        for length in range(len(ends) - 1, 0, -1):
            if self._followed[ends[length]]:
                return length, ends[length]
        return 0, self.ROOT

    def likeliest(self, node: int) -> tuple[int, float]:
        """The token that followed a node most often, and its share of all that followed."""
        best = self._best[node]
        return self._token[best], self._count[best] / self._followed[node]

    def _count_child(self, node: int, token: int) -> int:
        key = node << TOKEN_BITS | token
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = len(self._token)
            self._token.append(token)
            self._count.append(0)
            self._followed.append(0)
            self._best.append(self.ROOT)
        self._count[child] += 1
        self._followed[node] += 1
        if self._count[child] >= self._count[self._best[node]]:  # the root itself counts 0
            self._best[node] = child
        return child


class SuffixProposer(Proposer):
    """Drafts from a trie of prompt and output, and one of a corpus; the longer match speaks.

    Attributes:
        stops_after: given the count share of the token just drafted, whether to end the draft behind it.
    """

    name = "suffix"
    stops_after: Callable[[float], bool] | None = None

    def __init__(
        self,
        min_share: float = RANGES["min_share"].default,
        corpus: Sequence[int] = (),
        max_match: int = MAX_MATCH,
    ):
        """Read the corpus.

        Args:
            min_share: drafting ends before the product of count shares falls below this.
            corpus: token ids to look up in besides prompt and output.
            max_match: longest run of tokens compared.
        """
        self._min_share, self._max_match = min_share, max_match
        self._corpus = SuffixTrie(max_match)
        for token in corpus:
            self._corpus.append(token)
        self.reset()

    def reset(self) -> None:
        """Forget the last run; the corpus stays."""
        self._own = SuffixTrie(self._max_match)
        self._corpus.restart()
        self._num_read = 0

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Count the prompt."""
        self._read(context)
        return iter(())

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Draft up to `gamma` tokens, fewer where the counts say little.

        >>> SuffixProposer().propose([7, 8, 9, 5, 6, 7, 8, 9], 5, None, None).ids
        [5, 6, 7]
        """
        self._read(context)
        cursors = [(trie, trie.ends) for trie in (self._own, self._corpus)]
        ids: list[int] = []
        product = 1.0
        while len(ids) < gamma:
            length, node, trie = self._match(cursors)
            if not ids:
                gamma = min(gamma, length)  # no match, no draft
            if length == 0 or len(ids) >= gamma:
                break
            token, share = trie.likeliest(node)
            product *= share
            if product < self._min_share:
                break
            ids.append(token)
            if self.stops_after is not None and self.stops_after(share):
                break
            cursors = [(trie, trie.follow(ends, token)) for trie, ends in cursors]
        return Proposal(ids)

    @staticmethod
    def _match(cursors: list[tuple[SuffixTrie, list[int]]]) -> tuple[int, int, SuffixTrie]:
        """The longest match of all tries; among equals that of the first."""
        matches = [(*trie.longest(ends), trie) for trie, ends in cursors]
        return max(matches, key=lambda match: match[0])

    def _read(self, context: list[int]) -> None:
        for token in context[self._num_read :]:
            self._own.append(token)
            self._corpus.ends = self._corpus.follow(self._corpus.ends, token)
        self._num_read = max(self._num_read, len(context))
