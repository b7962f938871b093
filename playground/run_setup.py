"""What a run needs besides its target: the proposer chosen, and a record of what it runs on."""

import torch

from playground import registry
from playground.config import RunSettings
from playground.models import ModelStore, ReadyModel, Report
from playground.proposers import DraftModelProposer, NgramProposer, Proposer
from playground.registry import precision
from playground.registry.compat import pair_notice
from playground.registry.errors import ModelError


def make_proposer(
    store: ModelStore, target: ReadyModel, settings: RunSettings, report: Report
) -> tuple[Proposer, ReadyModel | None]:
    """Build the proposer the settings name, loading its model where it has one.

    Returns:
        The proposer, and the model it drafts with or None.

    Raises:
        ModelError: no draft chosen, or one that cannot be loaded or does not fit the target.
    """
    if settings.proposer == "none":
        return Proposer(), None
    if settings.proposer == "ngram":
        return NgramProposer(settings.ngram_min, settings.ngram_max), None
    if settings.proposer == "quantized":
        ready = store.drafter(target, settings.target, _quantized_precision(settings), report)
    else:
        if not settings.draft.strip():
            hint = "Choose one in the list, or type a Hub id or a local folder; n-gram and quantized copy need none."
            raise ModelError("No draft model is chosen.", hint)
        ready = store.drafter(target, settings.draft.strip(), settings.draft_precision, report)
    return DraftModelProposer(ready.lm, target.loaded.end_ids, target.lm.vocab_size), ready


def _quantized_precision(settings: RunSettings) -> str:
    if settings.quantized_precision != "auto":
        return settings.quantized_precision
    return precision.fastest_quantized(registry.device())


def environment_of(target: ReadyModel, drafter: ReadyModel | None) -> dict:
    """Describe device, software, threads and models of a run in plain values."""
    notices = [target.loaded.notice]
    if drafter is not None:
        notices += [drafter.loaded.notice, pair_notice(target.loaded, drafter.loaded)]
    return registry.environment() | {
        "threads": torch.get_num_threads(),
        "target": target.loaded.name,
        "target_precision": target.loaded.precision,
        "target_backend": type(target.lm).__name__,
        "draft": drafter.loaded.name if drafter else "",
        "draft_precision": drafter.loaded.precision if drafter else "",
        "notice": " ".join(dict.fromkeys(notice for notice in notices if notice)),
    }
