"""Which number type and how many threads train fastest here and now: measured, not assumed.

On a CPU with bfloat16 instructions autocast wins, on an older one float32 does; on a busy machine
fewer threads can beat more.
"""

from time import perf_counter

import torch
from torch import nn

from playground.registry.hardware import num_cores
from playground.training.batches import Batch
from playground.training.recipes.base import Recipe

REPEATS = 2
MAX_TEXTS = 4  # of a batch: enough to tell the settings apart


def fastest_setting(recipe: Recipe, module: nn.Module, batch: Batch) -> tuple[str, int]:
    """Time a forward and backward pass per setting, leave the best number of threads set, return both."""
    device = recipe.target.weights.device
    if device.type != "cpu":
        return "bfloat16", torch.get_num_threads()
    counts = sorted({1, max(1, num_cores() // 2), num_cores()})
    settings = [(precision, count) for count in counts for precision in ("bfloat16", "float32")]
    times: dict[tuple[str, int], float] = {}
    batch = _part(batch)
    for repeat in range(1 + REPEATS):  # the first round only warms up
        for setting in settings:
            spent = _time(recipe, module, batch, *setting)
            times[setting] = min(spent, times.get(setting, spent)) if repeat > 1 else spent
    best = min(times, key=times.__getitem__)
    torch.set_num_threads(best[1])
    return best


def _part(batch: Batch) -> Batch:
    hidden = {layer: states[:MAX_TEXTS] for layer, states in batch.hidden.items()}
    parts = (batch.ids, batch.weight, batch.top_ids, batch.top_probs)
    return Batch(*(part[:MAX_TEXTS] for part in parts), hidden)


def _time(recipe: Recipe, module: nn.Module, batch: Batch, precision: str, threads: int) -> float:
    torch.set_num_threads(threads)
    start = perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        loss = sum(guess.states.float().square().mean() for guess in recipe.guesses(module, batch))
    loss.backward()
    module.zero_grad(set_to_none=True)
    return perf_counter() - start
