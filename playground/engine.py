"""Speculative decoding: propose, verify in one target pass, commit. Algorithm 1 of the paper, as events.

`generate` yields events and nothing else; closing it stops the run between two passes. Plain
decoding is the same loop with a proposer that proposes nothing. Invariant between rounds:
`target.length == len(context) - 1`: the last committed token is fed together with the next draft.
A draft may be a tree: one pass feeds all of it, and the cache keeps the winning path.
Source: Leviathan et al. 2023, Algorithm 1. Knows no text but through `TextStream`, and no pages.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter

import torch

from playground.config import SpecConfig
from playground.display import Display
from playground.events import Committed, Event, Finished, Prefilled, Progress, Proposed, Tested, Verified
from playground.kept_logits import KeptLogits
from playground.lm import CachedLM
from playground.proposers import Proposal, Proposer
from playground.sampling import to_probs
from playground.text import Decoder, TextStream
from playground.verify import Rule, Verdict, verify_tree


def generate(
    target: CachedLM,
    proposer: Proposer,
    context_ids: Sequence[int],
    config: SpecConfig,
    end_ids: Sequence[int],
    decoder: Decoder,
    keep_cache: bool = False,
    rule: Rule = verify_tree,
    kept: KeptLogits | None = None,
) -> Iterator[Event]:
    """Continue `context_ids` with the target's distribution, speculating with `proposer`.

    Args:
        target: the model whose distribution we want; its cache may hold anything.
        proposer: guesses up to `config.gamma` tokens per round (the depth, for a tree). With `taps`, the
            prompt is read anew, so that it gets all hidden states.
        context_ids: the prompt, at least one token.
        config: gamma, budget, stop strings, sampling.
        end_ids: tokens that end the output (kept as its last token).
        decoder: turns ids into text.
        keep_cache: take over whatever the target's cache shares with the context, however it was made
            (for timing; a run whose tokens matter rebuilds what decoding left).
        rule: what judges a draft. Any other than `verify_tree` is not exact: the exactness lab shows how far off.
        kept: takes the logits of each round, to be told as Logits before Finished.

    Yields:
        Progress (long prompts), Prefilled, then Proposed and Verified per round, Logits, then Finished.

    Raises:
        ValueError: an empty context, or one that leaves no room for a token.
    """
    if not context_ids:
        raise ValueError("The context is empty: give at least one token.")
    if len(context_ids) > target.context_limit:
        raise ValueError(
            f"The prompt has {len(context_ids)} tokens; this model takes at most {target.context_limit}. Shorten it."
        )
    run = _Run(target, proposer, list(context_ids), config, end_ids, decoder, rule, kept)
    target.taps, target.hidden = proposer.taps, {}
    try:
        yield from run.prefill(keep_cache)
        while run.reason is None:
            yield from run.round()
    finally:
        target.taps, target.hidden = frozenset(), {}
    if kept is not None:
        yield from kept.events(decoder)
    yield Finished(run.reason, run.text.text, tuple(run.context[len(context_ids) :]))


class _Run:
    """The state of one run and its three steps."""

    def __init__(self, target, proposer, context, config: SpecConfig, end_ids, decoder: Decoder, rule: Rule, kept):
        self.target, self.proposer, self.context, self.config = target, proposer, context, config
        self.rule, self.kept = rule, kept
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
        for stage in (self._read(prompt, keep_cache), self.proposer.prefill(self.context)):
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

    def _read(self, prompt: list[int], keep_cache: bool) -> Iterator[int]:
        """The target's prefill; its hidden states go to a proposer that taps them, part by part."""
        if not self.proposer.taps:
            yield from self.target.prefill(prompt, keep_cache)
            return
        self.target.rollback(0)  # the hidden states of tokens already cached are gone
        for done in self.target.prefill(prompt):
            if done > 0:
                self.proposer.observe_prefill(dict(self.target.hidden))
            yield done

    def round(self) -> Iterator[Event]:
        """Propose, verify in one pass, commit."""
        self.num_rounds += 1
        assert self.target.length == len(self.context) - 1
        start = perf_counter()
        proposal = self._propose()
        proposed = perf_counter()
        nodes = self.display.nodes(proposal)
        shown = perf_counter()
        yield Proposed(self.num_rounds, nodes, (proposed - start) * 1000, proposal.num_scratch)

        resumed = perf_counter()
        draft = self._useful(proposal)
        logits = self.target.extend(*draft.layout(self.context[-1]))  # (1 + drafted + scratch, vocab)
        _synchronize(self.target.device)
        verified = perf_counter()
        num_rows, before = len(draft.ids) + 1, len(self.context)
        p_probs = to_probs(logits[:num_rows], self.config.sampling)
        verdict = self.rule(p_probs, draft.ids, draft.parents, draft.probs, self.rng)
        rows = [0, *(index + 1 for index in verdict.path)]  # of the pass: the last token and the winning path
        judged_at = perf_counter()
        committed = self._commit(verdict, draft.ids, p_probs, rows)
        committed_at = perf_counter()
        self.target.keep(before - 1, rows[: len(committed)])
        kept_at = perf_counter()
        self._tell(verdict, rows, logits[num_rows:])
        judged = verdict.until(len(committed))
        final_kind = verdict.final_kind if len(committed) == len(rows) else ""
        positions = self.display.positions(logits, p_probs, draft, judged, final_kind, verdict)
        if self.kept is not None:
            self.kept.keep(self.num_rounds, logits[:num_rows], draft)
        tested = tuple(Tested(j.index, draft.ids[j.index], j.p, j.q, j.u, j.accepted, j.overlap) for j in judged)
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
            sampling_ms=(judged_at - verified) * 1000,
            rollback_ms=(kept_at - committed_at) * 1000,
        )

    def _propose(self) -> Proposal:
        """Ask for gamma tokens, or fewer where more could never be committed."""
        room = self.target.context_limit - len(self.context)  # the pass feeds 1 + room tokens after length - 1
        gamma = min(self.config.gamma, self.budget - 1, room)
        if gamma < 1:
            return Proposal([])
        proposal = self.proposer.propose(self.context, gamma, self.config.sampling, self.rng)
        if proposal.depth > gamma:
            raise ValueError(f"{self.proposer.name} drafted {proposal.depth} tokens; {gamma} were asked for.")
        return proposal.fit(room)

    def _useful(self, proposal: Proposal) -> Proposal:
        """A chain up to its first end token: what follows could never be kept, so it is not fed.

        A tree is fed whole; the commit stops at an end token, so that what follows it is not tested either.
        """
        if proposal.parents is None and proposal.scratch is None:
            for index, token in enumerate(proposal.ids):
                if token in self.end_ids:
                    return proposal.first(index + 1)
        return proposal

    def _commit(
        self, verdict: Verdict, drafted: list[int], p_probs: torch.Tensor, rows: list[int]
    ) -> tuple[Committed, ...]:
        """The one place that knows ends, stops and the budget: the winning path and the final token, up to one.

        Args:
            rows: of `p_probs`, one per token that may be committed.
        """
        ids = [*(drafted[index] for index in verdict.path), verdict.final_id]
        kinds = ["accepted"] * (len(ids) - 1) + [verdict.final_kind]
        committed: list[Committed] = []
        for token, kind, probability in zip(ids, kinds, p_probs[rows, ids].tolist(), strict=True):
            committed.append(self._append(token, kind, probability))
            if self.reason is not None:
                break
        return tuple(committed)

    def _tell(self, verdict: Verdict, rows: list[int], scratch_logits: torch.Tensor) -> None:
        """Let the proposer learn from the round."""
        hidden = {layer: states[rows] for layer, states in self.target.hidden.items()}
        if len(scratch_logits):
            self.proposer.observe(verdict, hidden, scratch_logits)
        else:
            self.proposer.observe(verdict, hidden)

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
