"""Speculative decoding: propose, verify in one target pass, commit. Algorithm 1 of the paper, as events.

`generate` yields events and nothing else; closing it stops the run between two passes. Plain
decoding is the same loop with a proposer that proposes nothing. Invariant between rounds:
`target.length == len(context) - 1`: the last committed token is fed together with the next draft.
Source: Leviathan et al. 2023, Algorithm 1. Knows no text but through `TextStream`, and no pages.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter

import torch

from playground.config import SpecConfig
from playground.display import Display
from playground.events import Committed, Event, Finished, Prefilled, Progress, Proposed, Tested, Verified
from playground.lm import CachedLM
from playground.proposers import Proposal, Proposer
from playground.sampling import to_probs
from playground.text import Decoder, TextStream
from playground.verify import Verdict, verify_chain


def generate(
    target: CachedLM,
    proposer: Proposer,
    context_ids: Sequence[int],
    config: SpecConfig,
    end_ids: Sequence[int],
    decoder: Decoder,
    keep_cache: bool = False,
) -> Iterator[Event]:
    """Continue `context_ids` with the target's distribution, speculating with `proposer`.

    Args:
        target: the model whose distribution we want; its cache may hold anything.
        proposer: guesses up to `config.gamma` tokens per round.
        context_ids: the prompt, at least one token.
        config: gamma, budget, stop strings, sampling.
        end_ids: tokens that end the output (kept as its last token).
        decoder: turns ids into text.
        keep_cache: take over whatever the target's cache shares with the context, however it was made
            (for timing; a run whose tokens matter rebuilds what decoding left).

    Yields:
        Progress (long prompts), Prefilled, then Proposed and Verified per round, then Finished.

    Raises:
        ValueError: an empty context, or one that leaves no room for a token.
    """
    if not context_ids:
        raise ValueError("The context is empty: give at least one token.")
    if len(context_ids) > target.context_limit:
        raise ValueError(
            f"The prompt has {len(context_ids)} tokens; this model takes at most {target.context_limit}. Shorten it."
        )
    run = _Run(target, proposer, list(context_ids), config, end_ids, decoder)
    yield from run.prefill(keep_cache)
    while run.reason is None:
        yield from run.round()
    yield Finished(run.reason, run.text.text, tuple(run.context[len(context_ids) :]))


class _Run:
    """The state of one run and its three steps."""

    def __init__(self, target, proposer, context, config: SpecConfig, end_ids, decoder: Decoder):
        self.target, self.proposer, self.context, self.config = target, proposer, context, config
        self.end_ids = frozenset(end_ids)
        self.text = TextStream(decoder, config.stop_strings)
        self.display = Display(decoder)
        self.rng = torch.Generator(device=target.device).manual_seed(config.sampling.seed)
        self.budget = config.max_new_tokens
        self.num_rounds = 0
        self.reason: str | None = None

    def prefill(self, keep_cache: bool) -> Iterator[Event]:
        """Bring the prompt, less its last token, into the caches of target and proposer."""
        prompt, spent, reused = self.context[:-1], 0.0, None
        self.proposer.reset()
        for stage in (self.target.prefill(prompt, keep_cache), self.proposer.prefill(self.context)):
            start = perf_counter()
            for done in stage:
                reused = done if reused is None else reused
                spent += perf_counter() - start
                yield Progress(
                    "prefill", f"Reading the prompt: {done} of {len(prompt)} tokens", done / len(self.context)
                )
                start = perf_counter()
            _synchronize(self.target.device)
            spent += perf_counter() - start
        yield Prefilled(len(prompt), reused or 0, spent * 1000)

    def round(self) -> Iterator[Event]:
        """Propose, verify in one pass, commit."""
        self.num_rounds += 1
        assert self.target.length == len(self.context) - 1
        start = perf_counter()
        proposal = self._propose()
        proposed = perf_counter()
        drafted = proposal.ids
        nodes = self.display.nodes(proposal)
        shown = perf_counter()
        yield Proposed(self.num_rounds, nodes, (proposed - start) * 1000)

        resumed = perf_counter()
        tested_ids = self._useful(drafted)
        logits = self.target.extend([self.context[-1], *tested_ids])  # (tested + 1, vocab)
        _synchronize(self.target.device)
        verified = perf_counter()
        p_probs = to_probs(logits, self.config.sampling)
        q_probs = None if proposal.probs is None else proposal.probs[: len(tested_ids)]
        verdict = verify_chain(p_probs, tested_ids, q_probs, self.rng)
        before = len(self.context)
        committed, final_kind = self._commit(verdict, tested_ids, p_probs)
        self.target.rollback(len(self.context) - 1)
        self.proposer.observe(verdict)
        num_judged = min(len(verdict.judged), len(committed)) if not final_kind else len(verdict.judged)
        judged = verdict.judged[:num_judged]
        positions = self.display.positions(logits, p_probs, q_probs, tested_ids, len(judged), final_kind, verdict)
        tested = tuple(Tested(j.index, tested_ids[j.index], j.p, j.q, j.u, j.accepted, j.overlap) for j in judged)
        other = (shown - proposed) + (perf_counter() - verified)
        yield Verified(
            round=self.num_rounds,
            tested=tested,
            committed=committed,
            final_kind=final_kind,
            positions=positions,
            verify_ms=(verified - resumed) * 1000,
            other_ms=other * 1000,
            context_length=before,
        )

    def _propose(self) -> Proposal:
        """Ask for gamma tokens, or fewer where more could never be committed."""
        room = self.target.context_limit - len(self.context)  # the pass feeds 1 + gamma tokens after length - 1
        gamma = min(self.config.gamma, self.budget - 1, room)
        if gamma < 1:
            return Proposal([])
        proposal = self.proposer.propose(self.context, gamma, self.config.sampling, self.rng)
        if len(proposal.ids) > gamma:
            raise ValueError(f"{self.proposer.name} drafted {len(proposal.ids)} tokens; {gamma} were asked for.")
        return proposal

    def _useful(self, drafted: list[int]) -> list[int]:
        """The draft up to its first end token: what follows could never be kept, so it is not tested."""
        for index, token in enumerate(drafted):
            if token in self.end_ids:
                return drafted[: index + 1]
        return drafted

    def _commit(self, verdict: Verdict, drafted: list[int], p_probs: torch.Tensor) -> tuple[tuple[Committed, ...], str]:
        """The one place that knows ends, stops and the budget. Returns what was committed and the last kind."""
        committed: list[Committed] = []
        for item in verdict.judged[: verdict.num_accepted]:
            committed.append(self._append(drafted[item.index], "accepted", item.p))
            if self.reason is not None:
                return tuple(committed), ""
        row = verdict.num_accepted
        probability = float(p_probs[row, verdict.final_id])
        committed.append(self._append(verdict.final_id, verdict.final_kind, probability))
        return tuple(committed), verdict.final_kind

    def _append(self, token: int, kind: str, probability: float) -> Committed:
        self.context.append(token)
        self.budget -= 1
        piece = self.text.push(token)
        if token in self.end_ids:
            self.reason = "end_token"
        elif self.text.stopped:
            self.reason = "stop_string"
        elif self.budget == 0:
            self.reason = "length"
        elif len(self.context) > self.target.context_limit:
            self.reason = "context_full"
        if self.reason is not None and not self.text.stopped:
            piece += self.text.flush()
            if self.text.stopped and self.reason != "end_token":
                self.reason = "stop_string"
        return Committed(token, kind, piece, self.display.label(token), probability)


def _synchronize(device: torch.device) -> None:
    """Wait for the device, so that a pass is timed and not only its launch."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
