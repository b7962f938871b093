"""Load: the same prompts decoded with 1, 2, 4 … sequences at once, plainly and speculatively, interleaved.

For every batch size: plain, speculative, plain, … on the same caches, so that each run with speculation lies
between two plain ones and a machine that changes its pace changes it for both. The batch is always full. A
generator of frozen results; knows no pages.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from playground.config import RunSettings
from playground.lab.batch_decode import BatchDecoder, BatchRound
from playground.lab.batch_setup import lean_weights, make_batch_proposer
from playground.lab.cost_curve import LeftOut, curves_of
from playground.lab.cost_model import Curve, PassCost
from playground.lab.load_plan import LoadPlan, LoadResult, LoadRun, check_load, predicted
from playground.lm.ragged import RaggedLM
from playground.models import ModelStore, ReadyModel, Report
from playground.prompt import encode
from playground.proposers.batched import BatchProposer

PLAIN = BatchProposer()
Outputs = dict[int, list[int]]  # of each prompt, by its number


def curves_and_load(
    store: ModelStore,
    base: RunSettings,
    precisions: Sequence[str],
    contexts: Sequence[int],
    cycles: int,
    plan: LoadPlan | None,
    report: Report,
) -> Iterator[Curve | LeftOut | LoadResult]:
    """Measure the cost curves, then the load in the first of the precisions, whose curve the prediction reads.

    Args:
        base: target, proposer with its options, gamma and sampling. Its prompt and length are not used.
        plan: None = the curves only.

    Raises:
        ModelError, ValueError: a target, proposer or prompt that cannot be used.
    """
    if not precisions:
        raise ValueError("Choose at least one precision.")
    if plan is not None:
        check_load(base.proposer, base.gamma)
    curves: dict[int, Curve] = {}
    last_first = [*precisions[1:], precisions[0]]  # the load then finds its model in memory
    for item in curves_of(store, base.target, last_first, contexts, cycles, report):
        if isinstance(item, Curve) and item.precision == precisions[0]:
            curves[item.context] = item
        yield item
    if plan is not None and curves:
        base = replace(base, target_precision=precisions[0], max_new_tokens=plan.length, gamma_policy="constant")
        yield from load(store, base, plan, PassCost(curves.values()), report)


def load(store: ModelStore, base: RunSettings, plan: LoadPlan, cost: PassCost, report: Report) -> Iterator[LoadResult]:
    """Decode the workload at every batch size, the smallest first."""
    target = store.target(base.target, base.target_precision, report)
    prompts = [encode(target.loaded, replace(base, prompt=text))[1] for text in plan.workload]
    capacity = max(map(len, prompts)) + plan.length
    if capacity > target.lm.context_limit:
        raise ValueError(f"{target.loaded.name} takes at most {target.lm.context_limit} tokens: ask for fewer.")
    warm: set[int] = set()
    for batch in plan.batches:
        proposer = make_batch_proposer(store, target, base, batch, capacity, report)
        lm = RaggedLM(lean_weights(target), batch, capacity)
        service = _Service(target, lm, base, prompts, report)
        _warm_up(lm, base.gamma, warm, report)
        service.run(proposer, 2 * batch)
        runs: dict[bool, list[tuple[LoadRun, Outputs]]] = {False: [service.run(PLAIN)], True: []}
        for _ in range(plan.cycles):
            runs[True].append(service.run(proposer))
            runs[False].append(service.run(PLAIN))
        yield _result(batch, runs, cost, base.temperature == 0)


def _result(batch: int, runs: dict[bool, list[tuple[LoadRun, Outputs]]], cost: PassCost, greedy: bool) -> LoadResult:
    plain, speculative = (tuple(run for run, _ in runs[kind]) for kind in (False, True))
    plain_ms = statistics.median(run.latency_ms for run in plain)
    return LoadResult(
        batch=batch,
        plain=plain,
        speculative=speculative,
        predicted=predicted(_joined(speculative), plain_ms, cost),
        same=_same(runs[False][0][1], runs[True][0][1]) if greedy else None,
    )


def _warm_up(lm: RaggedLM, gamma: int, warm: set[int], report: Report) -> None:
    """Run every number of rows this batch can come to once: the first pass of each prepares kernels."""
    batch = lm.num_slots
    for rows in range(batch, batch * (gamma + 1) + 1):
        if rows in warm or gamma >= lm.capacity:
            continue
        warm.add(rows)
        report("calibrating", f"{batch} at once: warming up", rows / (batch * (gamma + 1)))
        for slot in range(batch):
            lm.clear(slot)
        lm.extend([[0] * (rows // batch + (slot < rows % batch)) for slot in range(batch)])


@dataclass(slots=True)
class _Service:
    """A queue of prompts and the slots that serve it."""

    target: ReadyModel
    lm: RaggedLM
    settings: RunSettings
    prompts: list[list[int]]
    report: Report

    def run(self, proposer: BatchProposer, num_tokens: int = 0) -> tuple[LoadRun, Outputs]:
        """Serve with a full batch until `num_tokens`, or a share for every prompt, are committed."""
        num_tokens = num_tokens or len(self.prompts) * self.settings.max_new_tokens
        batch, mode = self.lm.num_slots, "plain" if proposer is PLAIN else "speculative"
        loaded = self.target.loaded
        decoder = BatchDecoder(self.lm, self.target.lm.vocab_size, self.settings.spec, loaded.end_ids)
        outputs: Outputs = {}
        rounds: list[BatchRound] = []
        num_started = num_committed = 0
        while num_committed < num_tokens:
            for slot, item in enumerate(decoder.slots):
                if item is None or item.over:
                    decoder.start(slot, num_started, self.prompts[num_started % len(self.prompts)], proposer)
                    outputs[num_started] = []
                    num_started += 1
            rounds.append(decoder.round(proposer))
            num_committed += rounds[-1].num_committed
            for item in decoder.slots:
                outputs[item.number] = item.output
            message = f"{batch} at once, {mode}: {num_committed} of {num_tokens} tokens"
            self.report("measuring", message, min(1.0, num_committed / num_tokens))
        return _run_of(batch, rounds), outputs


def _run_of(batch: int, rounds: list[BatchRound]) -> LoadRun:
    return LoadRun(
        batch=batch,
        num_tokens=sum(item.num_committed for item in rounds),
        num_passes=len(rounds),
        num_rows=sum(item.num_rows for item in rounds),
        context=sum(item.context for item in rounds) / len(rounds),
        depths=tuple(depth for item in rounds for depth in item.depths),
        num_tested=sum(item.num_tested for item in rounds),
        num_accepted=sum(item.num_accepted for item in rounds),
        draft_ms=sum(item.draft_ms for item in rounds),
        verify_ms=sum(item.verify_ms for item in rounds),
        other_ms=sum(item.other_ms for item in rounds),
    )


def _joined(runs: Sequence[LoadRun]) -> LoadRun:
    """Several runs of one batch size as one, for the prediction."""
    names = ("num_tokens", "num_passes", "num_rows", "num_tested", "num_accepted", "draft_ms", "verify_ms", "other_ms")
    whole = {name: sum(getattr(run, name) for run in runs) for name in names}
    depths = tuple(depth for run in runs for depth in run.depths)
    return LoadRun(batch=runs[0].batch, context=sum(run.context for run in runs) / len(runs), depths=depths, **whole)


def _same(plain: Outputs, speculative: Outputs) -> float:
    """Share of the sequences in both whose tokens agree as far as both go."""
    both = plain.keys() & speculative.keys()
    agree = 0
    for number in both:
        pairs = zip(plain[number], speculative[number], strict=False)
        agree += all(mine == other for mine, other in pairs)
    return agree / len(both)
