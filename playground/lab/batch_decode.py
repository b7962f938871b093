"""Speculative decoding of many sequences at once: propose for all, verify in one target pass, commit each.

The engine's round over a batch. Every sequence has its own length, budget and random numbers, and is judged by
`verify.verify_chain` alone, so its tokens are those of decoding it by itself: token for token where greedy and
in float32, in distribution always. Plain decoding is the same round with a proposer that proposes nothing.
Invariant between rounds: a slot of the target holds its context less the last token. Knows no text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch

from playground.config import SpecConfig
from playground.lm.ragged import RaggedLM
from playground.proposers import Proposal
from playground.proposers.batched import BatchProposer
from playground.sampling import to_probs
from playground.verify import Verdict, verify_chain


@dataclass(slots=True)
class Sequenced:
    """One sequence on its way.

    Attributes:
        number: which prompt it continues; its random numbers follow from it.
        context: prompt and output, token ids.
        num_prompt: tokens of the prompt.
        budget: tokens it may still get.
    """

    number: int
    context: list[int]
    num_prompt: int
    budget: int
    rng: torch.Generator = field(repr=False)
    over: bool = False

    @property
    def output(self) -> list[int]:
        """Tokens committed so far."""
        return self.context[self.num_prompt :]


@dataclass(frozen=True, slots=True)
class BatchRound:
    """One round of the whole batch. `depths`: drafted tokens of each sequence; `context`: mean length before."""

    num_sequences: int
    num_rows: int
    context: float
    depths: tuple[int, ...]
    num_tested: int
    num_accepted: int
    num_committed: int
    draft_ms: float
    verify_ms: float
    other_ms: float


class BatchDecoder:
    """Slots with sequences in them. A sequence that is over stays until another is started in its slot."""

    def __init__(self, target: RaggedLM, num_tokens: int, config: SpecConfig, end_ids: Sequence[int]):
        """Args:
        target: one slot per sequence, with room for prompt, budget and a draft.
        num_tokens: ids the tokenizer knows; logits of padded rows beyond are cut off.
        config: gamma, budget of each sequence, sampling. Stop strings are not looked for.
        end_ids: tokens that end a sequence, kept as its last one.
        """
        self._target, self._num_tokens, self._config = target, num_tokens, config
        self._end_ids = frozenset(end_ids)
        self.slots: list[Sequenced | None] = [None] * target.num_slots

    def start(self, slot: int, number: int, prompt: Sequence[int], proposer: BatchProposer) -> None:
        """Read a prompt into a slot of target and proposer, alone. Raises ValueError when it is empty."""
        if not prompt:
            raise ValueError("The prompt is empty: give at least one token.")
        seed = (self._config.sampling.seed + number) % 2**31
        rng = torch.Generator(device=self._target.lengths.device).manual_seed(seed)
        budget = self._config.max_new_tokens
        self._target.prefill(slot, prompt[:-1])
        proposer.start(slot, list(prompt))
        self.slots[slot] = Sequenced(number, list(prompt), len(prompt), budget, rng)

    def round(self, proposer: BatchProposer) -> BatchRound:
        """Propose, verify in one pass, commit; every slot that is not over takes part."""
        start = perf_counter()
        going = [item is not None and not item.over for item in self.slots]
        proposals = self._propose(proposer, going)
        proposed = perf_counter()
        rows = [
            [item.context[-1], *proposal.ids] if on else []
            for item, proposal, on in zip(self.slots, proposals, going, strict=True)
        ]
        logits = self._target.extend(rows)[:, : self._num_tokens]  # (Σ rows, vocab)
        float(logits[-1, 0])  # waits for the device
        verified = perf_counter()
        context = sum(len(item.context) for item, on in zip(self.slots, going, strict=True) if on) / sum(going)
        verdicts = self._judge(logits, proposals, going)
        num_committed = sum(
            self._commit(slot, proposals[slot].ids, verdict) for slot, verdict in enumerate(verdicts) if verdict
        )
        return BatchRound(
            num_sequences=sum(going),
            num_rows=sum(map(len, rows)),
            context=context,
            depths=tuple(len(proposal.ids) for proposal, on in zip(proposals, going, strict=True) if on),
            num_tested=sum(len(verdict.judged) for verdict in verdicts if verdict),
            num_accepted=sum(verdict.num_accepted for verdict in verdicts if verdict),
            num_committed=num_committed,
            draft_ms=(proposed - start) * 1000,
            verify_ms=(verified - proposed) * 1000,
            other_ms=(perf_counter() - verified) * 1000,
        )

    def _propose(self, proposer: BatchProposer, going: list[bool]) -> list[Proposal]:
        """Chains cut behind an end token, and never longer than what could be committed."""
        gammas = [
            min(self._config.gamma, item.budget - 1) if on else 0 for item, on in zip(self.slots, going, strict=True)
        ]
        contexts = [item.context if item else [] for item in self.slots]
        rngs = [item.rng if item else None for item in self.slots]
        found = proposer.propose(contexts, gammas, self._config.sampling, rngs)
        return [self._useful(proposal) for proposal in found]

    def _useful(self, proposal: Proposal) -> Proposal:
        for index, token in enumerate(proposal.ids):
            if token in self._end_ids:
                return proposal.first(index + 1)
        return proposal

    def _judge(self, logits: torch.Tensor, proposals: list[Proposal], going: list[bool]) -> list[Verdict | None]:
        """Each sequence against its own rows of the target's distributions."""
        p_probs, first = to_probs(logits, self._config.sampling), 0
        verdicts: list[Verdict | None] = []
        for item, proposal, on in zip(self.slots, proposals, going, strict=True):
            if not on:
                verdicts.append(None)
                continue
            count = len(proposal.ids) + 1
            verdicts.append(verify_chain(p_probs[first : first + count], proposal.ids, proposal.probs, item.rng))
            first += count
        return verdicts

    def _commit(self, slot: int, drafted: list[int], verdict: Verdict) -> int:
        """Append what was accepted and the target's own token, up to an end; the cache forgets the rest."""
        item, before = self.slots[slot], len(self.slots[slot].context)
        for token in [*drafted[: verdict.num_accepted], verdict.final_id]:
            item.context.append(token)
            item.budget -= 1
            item.over = token in self._end_ids or item.budget == 0
            if item.over:
                break
        self._target.rollback(slot, len(item.context) - 1)
        return len(item.context) - before
