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
class Proposal:
    """One round's guess.

    Attributes:
        ids: drafted tokens, at most gamma of them, possibly none.
        probs: (n, vocab) distribution each was drawn from; None = deterministic (one-hot).
        parents: None = a chain.
    """

    ids: list[int]
    probs: torch.Tensor | None = None
    parents: list[int] | None = None


class Proposer:
    """Base: proposes nothing, remembers nothing."""

    name = "none"

    def reset(self) -> None:
        """Forget the last run."""

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Take in the prompt before the first round, yielding tokens done; its time counts as prefill."""
        return iter(())

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Guess up to `gamma` tokens that follow `context`."""
        return Proposal([])

    def observe(self, verdict: Verdict) -> None:
        """Learn from a verdict (adaptive proposers)."""
