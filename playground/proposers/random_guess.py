"""Random tokens: the floor below every proposer, and what a useless draft costs.

Each token is drawn from the uniform distribution over the vocabulary, which is also what verification is
told, so the output stays the target's. Source: the "random" draft of transformers' tests.
"""

import torch

from playground.config import SamplingConfig
from playground.proposers.base import Proposal, Proposer


class RandomProposer(Proposer):
    """Draws uniformly from all ids the target knows."""

    name = "random"

    def __init__(self, num_tokens: int):
        """Args:
        num_tokens: ids the target knows.
        """
        self._num_tokens = num_tokens

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Draw `gamma` tokens; their distributions share one row of memory."""
        ids = torch.randint(self._num_tokens, (gamma,), generator=rng, device=rng.device)
        row = torch.full((1, self._num_tokens), 1 / self._num_tokens, device=rng.device)
        return Proposal(ids.tolist(), row.expand(gamma, -1))
