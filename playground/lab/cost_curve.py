"""Measured time of one target pass over 1 … 64 tokens, behind contexts of several lengths.

Each context has a cache of its own over the same weights, so that one cycle goes through all contexts and
widths and a disturbance meets them alike. The first cycle warms up and does not count. A generator of
frozen curves, renewed after every cycle; knows no pages.
"""

import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

from playground.lab.cost_model import WIDTHS, Curve, Point
from playground.lm import CachedLM, another_cache
from playground.models import ModelStore, Report
from playground.registry.errors import ModelError

CONTEXTS = (128, 512, 2048)
CYCLES = 5


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What cannot be measured here, and why."""

    what: str
    reason: str


def curves_of(
    store: ModelStore, target: str, precisions: Sequence[str], contexts: Sequence[int], cycles: int, report: Report
) -> Iterator[Curve | LeftOut]:
    """Measure a target in one precision after another; one that does not run here is left out with the reason."""
    for precision in precisions:
        try:
            lm = store.target(target, precision, report).lm
        except ModelError as error:
            yield LeftOut(precision, f"{error.message} {error.hint}".strip())
            continue
        yield from measure_curves(lm, precision, contexts, cycles, report)


def measure_curves(
    lm: CachedLM, precision: str, contexts: Sequence[int], cycles: int, report: Report
) -> Iterator[Curve | LeftOut]:
    """Time passes of every width behind every context, in cycles; yield the curves so far after each.

    Args:
        precision: what to call the curves.
        contexts: lengths in tokens.
        cycles: how often each pass is timed, at least once.

    Raises:
        ValueError: no cycles or no contexts.
    """
    if cycles < 1 or not contexts or min(contexts) < 1:
        raise ValueError("Measuring needs at least one cycle and one context of at least one token.")
    caches: dict[int, CachedLM] = {}
    for context in sorted(set(contexts)):
        if context + WIDTHS[-1] > lm.context_limit:
            yield LeftOut(f"{context} tokens", f"{precision}: the context limit is {lm.context_limit} tokens.")
            continue
        caches[context] = _filled(another_cache(lm), context, precision, report)
    times: dict[tuple[int, int], list[float]] = {}
    for cycle in range(cycles + 1):
        for number, (context, cache) in enumerate(caches.items()):
            share = (cycle * len(caches) + number) / (cycles + 1) / len(caches)
            report("measuring", f"{precision}: passes behind {context} tokens, cycle {cycle} of {cycles}", share)
            for width in WIDTHS:
                times.setdefault((context, width), []).append(_pass_ms(cache, context, width))
        if cycle:
            yield from (_curve(precision, context, times) for context in caches)


def _filled(cache: CachedLM, context: int, precision: str, report: Report) -> CachedLM:
    draw = random.Random(0)
    ids = [draw.randrange(cache.vocab_size // 50, cache.vocab_size // 3) for _ in range(context)]
    for done in cache.prefill(ids):
        report("prefill", f"{precision}: filling a context of {context} tokens", done / context)
    return cache


def _pass_ms(cache: CachedLM, context: int, width: int) -> float:
    start = perf_counter()
    logits = cache.extend(cache.ids[:1] * width)
    float(logits[-1, 0])  # waits for the device
    spent = perf_counter() - start
    cache.rollback(context)
    return spent * 1000


def _curve(precision: str, context: int, times: dict[tuple[int, int], list[float]]) -> Curve:
    points = []
    for width in WIDTHS:
        counted = times[context, width][1:]  # the first was the warm-up
        points.append(Point(width, statistics.median(counted), min(counted), max(counted)))
    return Curve(precision, context, len(counted), tuple(points))
