"""Any proposer with a policy for gamma: asks it for as many tokens as the policy wants this round.

The policy learns from verdicts when a round is over and decides before the next one is drafted, so it
never knows the target's opinion of what it asks for. Knows no engine: draft time is the proposer's own,
verify time is what passes from the proposal to the verdict.
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import torch

from playground.config import SamplingConfig
from playground.gamma import GammaPolicy
from playground.proposers.base import Proposal, Proposer
from playground.verify import Verdict


class AdaptiveProposer(Proposer):
    """Wraps a proposer; `gamma` of the engine is the most it asks for."""

    def __init__(self, inner: Proposer, policy: GammaPolicy):
        self.inner, self.policy = inner, policy
        self.name = inner.name
        if policy.uses_confidence and hasattr(inner, "stops_after"):
            inner.stops_after = policy.stops_after
        self._asked: tuple[int, float, float] | None = None  # depth drafted, draft_ms, when it was handed over

    @property
    def taps(self) -> frozenset[int]:
        """The layers whose hidden states the proposer needs."""
        return self.inner.taps

    def reset(self) -> None:
        """Forget the last run, policy included."""
        self.inner.reset()
        self.policy.reset()
        self._asked = None

    def observe_prefill(self, hidden: dict[int, torch.Tensor]) -> None:
        """Hand the prompt's hidden states on."""
        self.inner.observe_prefill(hidden)

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Let the proposer take in the prompt."""
        return self.inner.prefill(context)

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Ask the policy how many, then the proposer for that many; 0 asks for none."""
        start = perf_counter()
        asked = self.policy.gamma(gamma)
        proposal = self.inner.propose(context, asked, sampling, rng) if asked > 0 else Proposal([])
        now = perf_counter()
        self._asked = proposal.depth, (now - start) * 1000, now
        return proposal

    def observe(self, verdict: Verdict, *rest: Any) -> None:
        """Tell policy and proposer how the round went; a round that asked for nothing is no evidence."""
        if self._asked is not None:
            depth, draft_ms, handed_over = self._asked
            self.policy.observe(depth, verdict.num_accepted, draft_ms, (perf_counter() - handed_over) * 1000)
            self._asked = None
        self.inner.observe(verdict, *rest)
