"""What every proposer promises.

A proposer guesses the next tokens; it never sees the target's opinion of the current round, only
the context and past verdicts. `probs` of a proposal must be the distribution each token was really
drawn from, filters included, or the output is no longer the target's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from playground.config import SamplingConfig
from playground.verify import Verdict


@dataclass(slots=True)
class Scratch:
    """Extra tokens in the target's pass: never tested, never committed, never kept in the cache.

    A scratch token sees the context and its ancestors, and stands one position after its parent; nothing
    drafted sees it. Lookahead's window is such a forest: its first row a chain after the context, each
    further row's token a child of the one above it.

    Attributes:
        ids: s tokens.
        parents: of each, an index into the drafted tokens followed by the scratch tokens: i < n is drafted
            token i, n + j is scratch token j, -1 the context's last token. A parent comes first.
    """

    ids: list[int]
    parents: list[int]


@dataclass(slots=True)
class Proposal:
    """One round's guess, n drafted tokens.

    Attributes:
        ids: drafted tokens, none deeper than gamma; possibly none. A tree may have more than gamma of them.
        probs: (n, vocab): row i is the distribution token i was really drawn from, given all tokens drawn
            before it. Siblings are tested in the order of their indices, so they must be drawn in it:
            drawn independently, their rows are equal; drawn without replacement, the row of a later sibling
            has 0 at the earlier ones and is normalised again. A row may be one-hot: that token was
            certain, for instance one of the likeliest k. None = every row is one-hot.
            Keeping or ordering tokens by looking at what was drawn is not a draw from the row; choosing
            them by the draft's probabilities alone is certain, hence one-hot.
        parents: index of the drafted token each one follows, -1 for the context's last token; a parent
            comes before its children. None = a chain.
        scratch: extra tokens for the target's pass.
    """

    ids: list[int]
    probs: torch.Tensor | None = None
    parents: list[int] | None = None
    scratch: Scratch | None = None

    def __post_init__(self):
        if self.parents is not None and self.parents == list(range(-1, len(self.ids) - 1)):
            self.parents = None  # a chain, however it was said

    @property
    def depth(self) -> int:
        """Tokens on the longest path. Raises ValueError when a parent does not come before its child."""
        if self.parents is None:
            return len(self.ids)
        depths: list[int] = []
        for index, parent in enumerate(self.parents):
            if not -1 <= parent < index:
                raise ValueError(f"Drafted token {index} has parent {parent}; parents come first.")
            depths.append(1 if parent < 0 else depths[parent] + 1)
        return max(depths, default=0)

    @property
    def num_scratch(self) -> int:
        """Extra tokens in the target's pass."""
        return len(self.scratch.ids) if self.scratch else 0

    def fit(self, room: int) -> "Proposal":
        """What fits into a pass of `room` tokens beside the context's: all, or no scratch, or the first ones.

        Which tokens are left out depends on their number only, so what stays was still drawn from `probs`.
        """
        if len(self.ids) + self.num_scratch <= room:
            return self
        return self.first(min(len(self.ids), room))

    def first(self, count: int) -> "Proposal":
        """The first `count` drafted tokens alone; parents come first, so they are still a tree."""
        probs = None if self.probs is None else self.probs[:count]
        return Proposal(self.ids[:count], probs, None if self.parents is None else self.parents[:count])

    def layout(self, last: int) -> tuple[list[int], list[int] | None]:
        """Tokens and parents of the target's pass: the context's last token, the drafted ones, the scratch ones.

        >>> Proposal([7, 8], parents=[-1, -1], scratch=Scratch([9], [1])).layout(5)
        ([5, 7, 8, 9], [-1, 0, 0, 2])
        """
        if self.parents is None and self.scratch is None:
            return [last, *self.ids], None
        parents = range(-1, len(self.ids) - 1) if self.parents is None else self.parents
        scratch = self.scratch or Scratch([], [])
        return [last, *self.ids, *scratch.ids], [-1, *(parent + 1 for parent in (*parents, *scratch.parents))]


class Proposer:
    """Base: proposes nothing, remembers nothing.

    Attributes:
        taps: numbers of the target's layers (as in CachedLM.taps) whose hidden states it needs.
    """

    name = "none"
    taps: frozenset[int] = frozenset()

    def reset(self) -> None:
        """Forget the last run."""

    def observe_prefill(self, hidden: dict[int, torch.Tensor]) -> None:
        """Take the target's hidden states of the next part of the prompt; only called where `taps` asks for any.

        Called after `reset` and before `prefill`, once per prefill pass. The parts joined cover the prompt
        from its first token to the last but one; a prompt of one token has none.

        Args:
            hidden: layer → (m, hidden), of m consecutive prompt tokens.
        """

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Take in the prompt before the first round, yielding tokens done; its time counts as prefill."""
        return iter(())

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Guess tokens that follow `context`, at most `gamma` of them on any path.

        With `taps`, the hidden states of all of the context but its last token have been observed by now.
        """
        return Proposal([])

    def observe(
        self, verdict: Verdict, hidden: dict[int, torch.Tensor], scratch_logits: torch.Tensor | None = None
    ) -> None:
        """Learn from a round: called once after each, also where none was left to draft and `propose` not asked.

        Args:
            verdict: what was tested, the winning path and the target's own token.
            hidden: layer → (a + 1, hidden) for the layers in `taps`, of the context's last token before the
                round and the a accepted ones: the tokens whose states were not observed before. Its own to keep.
            scratch_logits: (s, vocab) the target's logits after each scratch token, valid until the next
                pass; only given after a proposal with scratch tokens (None when they did not fit the context).
        """
