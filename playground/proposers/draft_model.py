"""A smaller model drafts: the classic proposer. Also serves a quantized copy of the target.

It samples its own tokens one by one from its own filtered distribution, and that distribution is
what verification sees. Its cache catches up on the committed context at the start of each round,
so "all accepted" (one token short) and "rejected" (too long) need no special case.
Source: Leviathan et al. 2023; Chen et al. 2023.
"""

from collections.abc import Callable, Iterator

import torch

from playground.config import SamplingConfig
from playground.heads import DraftVocabulary
from playground.lm import CachedLM
from playground.proposers.base import Proposal, Proposer
from playground.proposers.chain import Chain

GREEDY = SamplingConfig()


class DraftModelProposer(Proposer):
    """Drafts with a `CachedLM` that shares the target's token ids.

    Attributes:
        vocabulary: the ids that its logits stand for, those the target does not know left out.
        greedy: whether it drafts the likeliest token at any temperature.
        stops_after: given the draft's own probability of the token just drawn (before temperature and
            filters), whether to end the draft behind it; None = never.
    """

    name = "draft"
    stops_after: Callable[[float], bool] | None = None

    def __init__(self, lm: CachedLM, end_ids: tuple[int, ...], num_tokens: int, greedy: bool = False):
        """Args:
        lm: the draft model.
        end_ids: tokens after which drafting on is useless.
        num_tokens: ids the target knows; the draft never proposes beyond them.
        greedy: draft the likeliest token at any temperature: then its guess is certain, hence one-hot.
        """
        self.lm, self.greedy = lm, greedy
        self._end_ids = frozenset(end_ids)
        usable = torch.arange(min(lm.vocab_size, num_tokens), device=lm.device)
        ids = usable if lm.head_ids is None else lm.head_ids[lm.head_ids < num_tokens]
        self.vocabulary = DraftVocabulary(ids, num_tokens)
        self._agreed = 0  # cached tokens known to equal the context

    def reset(self) -> None:
        """Compare the whole cache with the next context."""
        self._agreed = 0

    def prefill(self, context: list[int]) -> Iterator[int]:
        """Take in all but the last token of the prompt.

        Raises:
            ValueError: the prompt is longer than this model's context.
        """
        if len(context) > self.lm.context_limit:
            raise ValueError(
                f"The prompt has {len(context)} tokens; the draft model takes at most {self.lm.context_limit}. "
                "Shorten it, or choose another proposer."
            )
        yield from self.lm.prefill(context[:-1])
        self._agreed = self.lm.length

    def propose(self, context: list[int], gamma: int, sampling: SamplingConfig, rng: torch.Generator) -> Proposal:
        """Catch up on the context, then draw up to `gamma` tokens one after another.

        Greedy drafting is deterministic, so its proposal carries no distributions (one-hot).
        """
        gamma = min(gamma, self.lm.context_limit - len(context) + 1)
        if gamma < 1:
            return Proposal([])
        self._align(context)
        sampling = GREEDY if self.greedy else sampling
        chain = Chain(self.vocabulary, gamma, sampling, rng, self._end_ids, self.stops_after)
        pending = context[self.lm.length :]
        while not chain.done:
            logits = self.lm.extend(pending)[-1, : len(self.vocabulary.ids)]
            pending = [chain.draw(logits)]
        return chain.proposal()

    def distrust(self, length: int) -> None:
        """Compare the cache with the next context from `length` on: what follows may have changed."""
        self._agreed = min(self._agreed, length)

    def _align(self, context: list[int]) -> None:
        """Roll the cache back to what it shares with the context, leaving at least one token to feed."""
        cached, common = self.lm.ids, min(self._agreed, self.lm.length)
        limit = min(self.lm.length, len(context) - 1)
        common = min(common, limit)
        while common < limit and cached[common] == context[common]:
            common += 1
        self.lm.rollback(common)
        self._agreed = len(context) - 1
