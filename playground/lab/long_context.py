"""What a long context costs: time per pass, memory, and n-gram lookup, at several lengths.

The context is filled with the bundled target's own kind of tokens; passes over 1 and gamma + 1
tokens are timed behind it, interleaved, and rolled back. Knows no reports.
"""

import random
import statistics
from collections.abc import Callable
from time import perf_counter

from playground.lm.lean import LeanLM
from playground.proposers import NgramProposer

LENGTHS = (128, 1024, 4096, 8000)
REPEATS = 7
LOOKUPS = 50


def measure(target: LeanLM, gamma: int, proposer: NgramProposer, report: Callable[[str], None]) -> list[dict]:
    """Return one record per context length that fits the target.

    Each has: `tokens`; `plain_ms` and `round_ms`, medians of a pass over 1 and over gamma + 1 tokens;
    `prefill_s`; `lookup_us`, microseconds the n-gram proposer takes per round of three new tokens;
    `cache_mib`, keys and values.
    """
    draw = random.Random(0)
    context = [draw.randrange(target.vocab_size // 50, target.vocab_size // 3) for _ in range(max(LENGTHS))]
    records = []
    for length in LENGTHS:
        if length + gamma + 1 > target.context_limit:
            continue
        report(f"context of {length} tokens")
        start = perf_counter()
        for _ in target.prefill(context[:length]):
            pass
        prefill_s = perf_counter() - start
        times: dict[int, list[float]] = {1: [], gamma + 1: []}
        for _ in range(REPEATS + 2):
            for width, values in times.items():
                start = perf_counter()
                target.extend(context[:1] * width)
                values.append((perf_counter() - start) * 1000)
                target.rollback(length)
        plain, round_ = (statistics.median(values[2:]) for values in times.values())
        records.append(
            {
                "tokens": length,
                "plain_ms": round(plain, 2),
                "round_ms": round(round_, 2),
                "prefill_s": round(prefill_s, 2),
                "lookup_us": round(_lookup_us(proposer, context[:length], gamma), 1),
                "cache_mib": round(target.cache_bytes / 2**20, 1),
            }
        )
    target.reset()
    return records


def _lookup_us(proposer: NgramProposer, context: list[int], gamma: int) -> float:
    """Microseconds per round once the prompt is indexed, three tokens longer each time."""
    proposer.reset()
    grown = list(context)
    proposer.propose(grown, gamma, None, None)
    spent = 0.0
    for step in range(LOOKUPS):
        grown += [context[step], context[step + 1], context[step + 2]]
        start = perf_counter()
        proposer.propose(grown, gamma, None, None)
        spent += perf_counter() - start
    return spent / LOOKUPS * 1e6
