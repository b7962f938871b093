"""Plain decoding, measured: what every speedup is measured against.

A short run of the engine itself with a proposer that proposes nothing, on the very prompt, with the
same sampling, after warm-up and with prefill apart: once before the first round and once after the
last, since a shared machine changes its pace within seconds. A recent figure for the same target,
precision, threads and context bucket is used again before a run. Knows nothing of names or pages.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import monotonic

import torch

from playground.config import SamplingConfig, SpecConfig
from playground.engine import generate
from playground.events import Calibrated, Event, Prefilled, Progress, Proposed, Verified
from playground.lm import CachedLM
from playground.proposers import Proposer
from playground.sampling import is_greedy
from playground.text import Decoder

WARMUP_ROUNDS = 2
MEASURED_ROUNDS = 12
MAX_AGE_S = 60.0  # older figures say little about the machine as it is now


class Baseline:
    """Measures plain decoding of targets and remembers the newest figure of each kind of run."""

    def __init__(self):
        self._known: dict[tuple, tuple[float, Calibrated]] = {}  # key → time measured, figure

    def measure(
        self, key: tuple, target: CachedLM, context: Sequence[int], sampling: SamplingConfig, decoder: Decoder
    ) -> Iterator[Event]:
        """Yield Progress and Prefilled while measuring, then Calibrated; at once when measured just before.

        Args:
            key: names the target and its precision.
            context: the prompt's token ids.
        """
        key = _full_key(key, context, sampling)
        measured_at, known = self._known.get(key, (0.0, None))
        if known is not None and monotonic() - measured_at < MAX_AGE_S:
            yield replace(known, cached=True)
            return
        yield from self._measure(key, target, context, sampling, decoder)

    def confirm(
        self,
        key: tuple,
        target: CachedLM,
        context: Sequence[int],
        sampling: SamplingConfig,
        decoder: Decoder,
        output_ids: Sequence[int],
    ) -> Iterator[Event]:
        """Measure again where a run ended and yield the mean of both ends as Calibrated.

        A step costs more the longer the context is, so the mean of the run's start and end is fair to it.
        """
        before = self._known[_full_key(key, context, sampling)][1]
        room = target.context_limit - WARMUP_ROUNDS - MEASURED_ROUNDS
        reached = [*context, *output_ids][: max(room, len(context))]
        key = _full_key(key, reached, sampling)
        for event in self._measure(key, target, reached, sampling, decoder, keep_cache=True):
            if isinstance(event, Calibrated):
                step_ms = (before.step_ms + event.step_ms) / 2
                yield Calibrated(1000 / step_ms, step_ms, before.num_steps + event.num_steps, False)
            elif isinstance(event, Progress):
                yield event

    def _measure(
        self,
        key: tuple,
        target: CachedLM,
        context: Sequence[int],
        sampling: SamplingConfig,
        decoder: Decoder,
        keep_cache: bool = False,
    ) -> Iterator[Event]:
        rounds: list[float] = []
        drafted_ms = 0.0
        total = WARMUP_ROUNDS + MEASURED_ROUNDS
        plain = SpecConfig(gamma=0, max_new_tokens=total, sampling=sampling)
        for event in generate(target, Proposer(), context, plain, (), decoder, keep_cache):
            if isinstance(event, Progress | Prefilled):
                yield event
            elif isinstance(event, Proposed):
                drafted_ms = event.draft_ms
            elif isinstance(event, Verified):
                rounds.append(drafted_ms + event.verify_ms + event.other_ms)
                yield Progress("calibrating", "Measuring plain decoding on this prompt", event.round / total)
        step_ms = statistics.median(rounds[WARMUP_ROUNDS:] or rounds)
        measured = Calibrated(1000 / step_ms, step_ms, len(rounds[WARMUP_ROUNDS:]), False)
        self._known[key] = monotonic(), measured
        yield measured


def _full_key(key: tuple, context: Sequence[int], sampling: SamplingConfig) -> tuple:
    bucket = max(64, 1 << (len(context) - 1).bit_length())  # tokens, rounded up to a power of two
    return (*key, torch.get_num_threads(), bucket, is_greedy(sampling))
