"""Proposers for many sequences at once: one per slot side by side, or one draft model for all.

What looks things up in its own sequence is simply made once per slot. A draft model drafts for all slots
together, one pass per drafted position, so that its weights too are read once for the batch. Either way a
slot's guess is what it would be for that sequence alone.
"""

from collections.abc import Callable, Sequence

import torch

from playground.config import SamplingConfig
from playground.heads import DraftVocabulary
from playground.lm.ragged import RaggedLM
from playground.proposers.base import Proposal, Proposer
from playground.proposers.chain import Chain
from playground.proposers.draft_model import GREEDY


class BatchProposer:
    """Base: proposes nothing for any slot."""

    def start(self, slot: int, context: list[int]) -> None:
        """Begin a new sequence in a slot; its time counts as prefill."""

    def propose(
        self, contexts: Sequence[list[int]], gammas: Sequence[int], sampling: SamplingConfig, rngs: Sequence
    ) -> list[Proposal]:
        """Guess a chain for every slot, at most `gammas[slot]` tokens that follow `contexts[slot]`; 0 = idle."""
        return [Proposal([]) for _ in contexts]


class PerSlotProposer(BatchProposer):
    """A proposer of its own for every slot; one that needs nothing of the target and drafts chains."""

    def __init__(self, make: Callable[[], Proposer], num_slots: int):
        self._proposers = [make() for _ in range(num_slots)]

    def start(self, slot: int, context: list[int]) -> None:
        self._proposers[slot].reset()

    def propose(
        self, contexts: Sequence[list[int]], gammas: Sequence[int], sampling: SamplingConfig, rngs: Sequence
    ) -> list[Proposal]:
        slots = zip(self._proposers, contexts, gammas, rngs, strict=True)
        return [
            proposer.propose(context, gamma, sampling, rng) if gamma else Proposal([])
            for proposer, context, gamma, rng in slots
        ]


class BatchedDraftProposer(BatchProposer):
    """One draft model for all slots. Invariant: slot s of its cache holds `_cached[s]`, a start of a text."""

    def __init__(self, lm: RaggedLM, vocabulary: DraftVocabulary, end_ids: Sequence[int], greedy: bool = False):
        """Args:
        lm: the draft model, with one slot per sequence.
        vocabulary: the ids its logits stand for, in order; those the target does not know left out.
        end_ids: tokens after which drafting on is useless.
        greedy: draft the likeliest token at any temperature.
        """
        self._lm, self._vocabulary, self._greedy = lm, vocabulary, greedy
        self._end_ids = frozenset(end_ids)
        self._cached: list[list[int]] = [[] for _ in range(lm.num_slots)]
        self._agreed = [0] * lm.num_slots  # leading cached tokens known to equal the context

    def start(self, slot: int, context: list[int]) -> None:
        """Take in all but the last token of the prompt."""
        self._lm.prefill(slot, context[:-1])
        self._cached[slot] = context[:-1]
        self._agreed[slot] = len(context) - 1

    @torch.inference_mode()
    def propose(
        self, contexts: Sequence[list[int]], gammas: Sequence[int], sampling: SamplingConfig, rngs: Sequence
    ) -> list[Proposal]:
        """Catch up on every context, then draw one token per slot and pass until every chain is done."""
        sampling = GREEDY if self._greedy else sampling
        chains = [
            Chain(self._vocabulary, gamma, sampling, rng, self._end_ids) if gamma else None
            for gamma, rng in zip(gammas, rngs, strict=True)
        ]
        pending = [self._behind(slot, contexts[slot]) if chain else [] for slot, chain in enumerate(chains)]
        while any(pending):
            logits = self._lm.extend(pending)  # (Σ pending, D)
            ends = torch.tensor([len(ids) for ids in pending]).cumsum(0).tolist()
            for slot, ids in enumerate(pending):
                if not ids:
                    continue
                self._cached[slot].extend(ids)
                chain = chains[slot]
                token = chain.draw(logits[ends[slot] - 1, : len(self._vocabulary.ids)])
                pending[slot] = [] if chain.done else [token]
        return [chain.proposal() if chain else Proposal([]) for chain in chains]

    def _behind(self, slot: int, context: list[int]) -> list[int]:
        """Roll the slot back to what it shares with the context and return the tokens it lacks, at least one."""
        cached, limit = self._cached[slot], min(len(self._cached[slot]), len(context) - 1)
        common = min(self._agreed[slot], limit)
        while common < limit and cached[common] == context[common]:
            common += 1
        del cached[common:]
        self._lm.rollback(slot, common)
        self._agreed[slot] = len(context) - 1
        return context[common:]
