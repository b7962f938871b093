"""Plain decoding, measured: what every speedup is measured against.

A short run of the engine itself with a proposer that proposes nothing, on the very prompt, with the
same sampling, after warm-up and with prefill apart. Remembered per target, precision, threads and
context bucket. Knows nothing of names or pages.
"""

import statistics
from collections.abc import Iterator, Sequence

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


class Baseline:
    """Measures plain decoding of targets and remembers the figures."""

    def __init__(self):
        self._known: dict[tuple, Calibrated] = {}

    def measure(
        self, key: tuple, target: CachedLM, context: Sequence[int], sampling: SamplingConfig, decoder: Decoder
    ) -> Iterator[Event]:
        """Yield Progress and Prefilled while measuring, then Calibrated; at once when already known.

        Args:
            key: names the target and its precision.
            context: the prompt's token ids.
        """
        bucket = max(64, 1 << (len(context) - 1).bit_length())  # tokens, rounded up to a power of two
        key = (*key, torch.get_num_threads(), bucket, is_greedy(sampling))
        if known := self._known.get(key):
            yield Calibrated(known.tokens_per_second, known.step_ms, known.num_steps, True)
            return
        rounds: list[float] = []
        drafted_ms = 0.0
        total = WARMUP_ROUNDS + MEASURED_ROUNDS
        plain = SpecConfig(gamma=0, max_new_tokens=total, sampling=sampling)
        for event in generate(target, Proposer(), context, plain, (), decoder):
            if isinstance(event, Progress | Prefilled):
                yield event
            elif isinstance(event, Proposed):
                drafted_ms = event.draft_ms
            elif isinstance(event, Verified):
                rounds.append(drafted_ms + event.verify_ms + event.other_ms)
                yield Progress("calibrating", "Measuring plain decoding on this prompt", event.round / total)
        step_ms = statistics.median(rounds[WARMUP_ROUNDS:] or rounds)
        measured = Calibrated(1000 / step_ms, step_ms, len(rounds[WARMUP_ROUNDS:]), False)
        self._known[key] = measured
        yield measured
