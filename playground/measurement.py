"""Plain decoding of one model timed in each precision, one after the other, in the store that runs use.

Each figure takes the way of a run's baseline: the engine with a proposer that proposes nothing, on a
short prompt, after warm-up and with prefill apart. Remembers what runs measured, too. Knows no pages.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import closing

import torch

from playground.baseline import Baseline
from playground.config import RunSettings, SamplingConfig
from playground.events import Calibrated, Event, Progress
from playground.models import ModelStore, ReadyModel
from playground.prompt import encode
from playground.registry.errors import ModelError
from playground.speeds import Speeds, Step

log = logging.getLogger(__name__)
PROMPT = "Explain in a few sentences why the sky is blue."


def measure_precisions(
    store: ModelStore, speeds: Speeds, model: str, precisions: Iterable[str], emit: Callable[[Step], None]
) -> None:
    """Load a model in each precision in turn, time plain decoding and remember it. The last one stays loaded.

    Args:
        emit: told each step; an exception from it ends the measurement. A precision that cannot be
            measured ends in a step "failed" with the reason, and the next one has its turn.
    """
    for precision in precisions:
        try:
            emit(_measure(store, speeds, model, precision, emit))
        except ModelError as error:
            emit(Step(precision, "failed", error.message))
        except (RuntimeError, ValueError, MemoryError) as error:
            log.exception("%s could not be measured in %s", model, precision)
            reason = "Not enough memory." if "memory" in f"{error!r}".lower() else f"{type(error).__name__}."
            emit(Step(precision, "failed", f"It could not be measured here: {reason}"))


def _measure(store: ModelStore, speeds: Speeds, model: str, precision: str, emit: Callable[[Step], None]) -> Step:
    def report(stage: str, message: str, fraction: float | None) -> None:
        emit(Step(precision, stage, message, fraction))

    report("loading", "Loading", None)
    target = store.target(model, precision, report)
    _, ids = encode(target.loaded, RunSettings(PROMPT, target=model))
    figure = 0.0
    with closing(Baseline().measure(target.key, target.lm, ids, SamplingConfig(), target.decoder)) as events:
        for event in events:
            if isinstance(event, Progress):
                report(event.stage, event.message, event.fraction)
            elif isinstance(event, Calibrated):
                figure = event.tokens_per_second
                remember(speeds, target, event)
    return Step(precision, "measured", tokens_per_second=figure)


def remember(speeds: Speeds, target: ReadyModel, event: Event) -> None:
    """Remember the figure of an event that says how fast plain decoding was just now; no other event matters."""
    if isinstance(event, Calibrated) and not event.cached:
        loaded = target.loaded
        speeds.record(loaded.name, loaded.precision, torch.get_num_threads(), event.tokens_per_second)
