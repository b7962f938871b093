"""A smaller model drafts: the classic proposer. Also serves a quantized copy of the target.

It samples its own tokens one by one from its own filtered distribution, and that distribution is
what verification sees. Its cache catches up on the committed context at the start of each round,
so "all accepted" (one token short) and "rejected" (too long) need no special case.
Source: Leviathan et al. 2023; Chen et al. 2023.
"""

from collections.abc import Callable, Iterator

import torch

from playground.config import SamplingConfig
from playground.lm import CachedLM
from playground.proposers.base import Proposal, Proposer
from playground.sampling import draw, is_greedy, to_probs


class DraftModelProposer(Proposer):
    """Drafts with a `CachedLM` that shares the target's token ids.

    Attributes:
        stops_after: given the draft's own probability of the token just drawn (before temperature and
            filters), whether to end the draft behind it; None = never.
    """

    name = "draft"
    stops_after: Callable[[float], bool] | None = None

    def __init__(self, lm: CachedLM, end_ids: tuple[int, ...], num_tokens: int):
        """Args:
        lm: the draft model.
        end_ids: tokens after which drafting on is useless.
        num_tokens: ids the target knows; the draft never proposes beyond them.
        """
        self.lm = lm
        self._end_ids = frozenset(end_ids)
        self._num_tokens = num_tokens
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
        greedy = is_greedy(sampling)
        ids: list[int] = []
        rows: list[torch.Tensor] = []
        pending = context[self.lm.length :]
        while True:
            logits = self.lm.extend(pending)[-1:, : self._num_tokens]  # (1, vocab)
            if greedy:
                token = int(logits.argmax())
            else:
                rows.append(to_probs(logits, sampling))
                token = draw(rows[-1][0], rng)
            ids.append(token)
            if len(ids) == gamma or token in self._end_ids or self._unsure(logits[0], token):
                return Proposal(ids, self._padded(torch.cat(rows)) if rows else None)
            pending = [token]

    def _unsure(self, logits: torch.Tensor, token: int) -> bool:
        return self.stops_after is not None and self.stops_after(float(torch.softmax(logits, -1)[token]))

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

    def _padded(self, probs: torch.Tensor) -> torch.Tensor:
        missing = self._num_tokens - probs.shape[1]
        return torch.nn.functional.pad(probs, (0, missing)) if missing > 0 else probs
