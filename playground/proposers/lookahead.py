"""Lookahead: the target guesses for itself, in the pass that verifies, and keeps its n-grams in a pool.

Beside the draft, each pass carries a window of tokens further ahead, guessed by earlier passes: Jacobi
iterations. Row r of column c stands r + c places after the context's last token, which is row 0 of column
0; it sees row 0 up to its column and the column above it. The target's own opinion after the last row
completes an n-gram per column, which goes to the pool, and becomes the next last row. What the pool has
for the context's last token is drafted, so a guess is certain: one-hot q, exact at every temperature.
Source: Fu et al. 2024, arXiv 2402.02057 (Lookahead Decoding).
"""

import random
from collections.abc import Iterable

import torch

from playground.config import SamplingConfig
from playground.proposers.base import Proposal, Proposer, Scratch
from playground.verify import Verdict


class NgramPool:
    """What followed each token in n-grams seen: per first token, the latest `num_kept` different ones."""

    def __init__(self, num_kept: int):
        self._num_kept = num_kept
        self._rest: dict[int, dict[tuple[int, ...], None]] = {}  # a dict keeps its order: latest last

    def add(self, first: int, rest: tuple[int, ...]) -> None:
        """Add an n-gram, or make it the latest again."""
        known = self._rest.setdefault(first, {})
        known.pop(rest, None)
        known[rest] = None
        if len(known) > self._num_kept:
            del known[next(iter(known))]

    def after(self, first: int) -> list[tuple[int, ...]]:
        """The n-grams of a first token without it, latest first."""
        return list(reversed(self._rest.get(first, {})))


def prefix_tree(guesses: Iterable[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """Ids and parents of a tree in which guesses share what they begin with.

    >>> prefix_tree([(5, 6, 7), (5, 8), (9,)])
    ([5, 6, 7, 8, 9], [-1, 0, 1, 0, -1])
    """
    ids: list[int] = []
    parents: list[int] = []
    nodes: dict[tuple[int, ...], int] = {(): -1}
    for guess in guesses:
        for end in range(1, len(guess) + 1):
            if guess[:end] not in nodes:
                nodes[guess[:end]] = len(ids)
                ids.append(guess[end - 1])
                parents.append(nodes[guess[: end - 1]])
    return ids, parents


class LookaheadProposer(Proposer):
    """Drafts n-grams from the pool; no model, no training, no hidden states.

    Steady state, W columns and n-grams of N tokens: N − 1 rows, so W·(N − 1) − 1 scratch tokens (row 0 lacks
    column 0, the context's last token). The first N − 2 passes build the rows one by one, from a longer row
    0 of tokens of the context, and spend a column each.
    """

    name = "lookahead"

    def __init__(self, window: int = 5, ngram_size: int = 4, num_guesses: int = 4, tree: bool = True):
        """Args:
        window: columns W.
        ngram_size: N, at least 3; a draft has at most N - 1 tokens on a path.
        num_guesses: n-grams kept and tried per first token.
        tree: try all of them at once; else the latest one, as a chain.
        """
        if window < 1 or ngram_size < 3 or num_guesses < 1:
            raise ValueError("Lookahead needs a window and guesses of at least 1, and n-grams of at least 3 tokens.")
        self._window, self._ngram_size = window, ngram_size
        self._num_guesses, self._tree = num_guesses, tree
        self.reset()

    def reset(self) -> None:
        """Empty window and pool."""
        self._pool = NgramPool(self._num_guesses)
        self._rows: list[list[int]] = []
        self._last = -1  # the context's last token when the window was handed over,
        self._drafted: list[int] = []  # and what was drafted with it

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Draft what the pool has for the last token, cut to `gamma`; hand over the window."""
        if gamma < 1:
            return Proposal([])
        if not self._rows:
            count = self._window - 1 + self._ngram_size - 2
            self._rows = [random.Random(0).choices(context, k=count)]
        self._last = context[-1]
        guesses = self._pool.after(self._last)[: None if self._tree else 1]
        self._drafted, parents = prefix_tree(guess[:gamma] for guess in guesses)
        return Proposal(self._drafted, None, parents, self._scratch(len(parents)))

    def _scratch(self, num_drafted: int) -> Scratch:
        """The window row by row. Row 0 is a chain; a further row's tokens follow those above them."""
        top, parents = self._rows[0], [-1, *range(num_drafted, num_drafted + len(self._rows[0]) - 1)]
        parents = parents[: len(top)]
        above = [-1, *range(num_drafted, num_drafted + len(top))]  # row 0 with its column 0
        for row in self._rows[1:]:
            first = num_drafted + len(parents)
            parents += above[: len(row)]
            above = list(range(first, first + len(row)))
        return Scratch([token for row in self._rows for token in row], parents)

    def observe(
        self, verdict: Verdict, hidden: dict[int, torch.Tensor], scratch_logits: torch.Tensor | None = None
    ) -> None:
        """Take the target's tokens after the last row: n-grams for the pool and the next row.

        The n-gram of column 0 counts only where it goes on as the output did. All columns move on with the
        output; those it has passed go to the far end.
        """
        if scratch_logits is None:
            return
        rows, path = self._rows, verdict.path
        new = scratch_logits[-len(rows[-1]) :].argmax(-1).tolist()
        if len(rows) < self._ngram_size - 1:  # still building: one column is spent
            self._rows = [*(row[1:] for row in rows), new if len(rows) == 1 else new[1:]]
            return
        came = self._drafted[path[0]] if path else verdict.final_id
        for column, first in enumerate((self._last, *rows[0])):
            if column > 0 or rows[1][0] == came:
                self._pool.add(first, (*(row[column] for row in rows[1:]), new[column]))
        passed = len(path) % self._window
        moved = [row[passed:] + row[:passed] for row in (*rows[1:], new)]
        self._rows = [moved[0][1:], *moved[1:]]
