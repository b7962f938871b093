"""How many threads a pass runs fastest with here and now: measured, not assumed.

On a CPU shared with other work, two OpenMP threads can be ten times slower than one, because each
parallel region waits for the slower thread. Threads started later inherit the choice.
"""

import statistics
from collections.abc import Callable
from time import perf_counter

import torch

from playground.registry.hardware import num_cores

REPEATS = 5


def choose_threads(step: Callable[[], None]) -> int:
    """Time `step` with 1, 2, 4, … threads in turn and keep the count with the lowest median.

    Args:
        step: one representative pass; it is run 1 + 5 times per candidate.

    Returns:
        The number of threads now set.
    """
    counts = [count for count in (1, 2, 4, 8, 16, 32) if count < num_cores()] + [num_cores()]
    times: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(1 + REPEATS):
        for count in counts:
            torch.set_num_threads(count)
            start = perf_counter()
            step()
            times[count].append(perf_counter() - start)
    best = min(counts, key=lambda count: statistics.median(times[count][1:]))
    torch.set_num_threads(best)
    return best
