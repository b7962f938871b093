"""A chain drawn token by token from logits over a reduced vocabulary: what heads that draft have in common.

Each token is drawn from the draft's own filtered distribution, which is what verification sees; ids outside
the vocabulary have draft probability 0. Greedy drafting is certain, so it carries no distributions.
"""

from collections.abc import Callable

import torch

from playground.config import SamplingConfig
from playground.heads import DraftVocabulary
from playground.proposers.base import Proposal
from playground.sampling import draw, is_greedy, to_probs


class Chain:
    """Collects drafted tokens.

    Attributes:
        done: whether the chain has its `gamma` tokens, or ends early behind the last one drawn.
    """

    def __init__(
        self,
        vocabulary: DraftVocabulary,
        gamma: int,
        sampling: SamplingConfig,
        rng: torch.Generator,
        end_ids: frozenset[int] = frozenset(),
        stops_after: Callable[[float], bool] | None = None,
    ):
        """Begin an empty chain.

        Args:
            end_ids: tokens after which drafting on is useless.
            stops_after: given the draft's own probability of the token just drawn (before temperature and
                filters), whether to end the draft behind it; None = never.
        """
        self._vocabulary, self._gamma, self._sampling, self._rng = vocabulary, gamma, sampling, rng
        self._end_ids, self._stops_after = end_ids, stops_after
        self._ids: list[int] = []
        self._rows: list[torch.Tensor] = []
        self.done = False

    def draw(self, logits: torch.Tensor) -> int:
        """Draw the next token from draft logits (D,) and return its id."""
        if is_greedy(self._sampling):
            index = int(logits.argmax())
        else:
            self._rows.append(to_probs(logits[None], self._sampling))
            index = draw(self._rows[-1][0], self._rng)
        token = int(self._vocabulary.ids[index])
        self._ids.append(token)
        unsure = self._stops_after is not None and self._stops_after(float(logits.softmax(-1)[index]))
        self.done = len(self._ids) == self._gamma or token in self._end_ids or unsure
        return token

    def proposal(self) -> Proposal:
        """What was drawn so far, with the distributions it was drawn from."""
        return Proposal(self._ids, self._vocabulary.spread(torch.cat(self._rows)) if self._rows else None)
