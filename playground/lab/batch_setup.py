"""The proposer of a batch from a person's settings: one per slot, or one draft model for all slots."""

from playground.config import RunSettings
from playground.lab.load_plan import check_load
from playground.lm import LeanLM, LeanWeights
from playground.lm.ragged import RaggedLM
from playground.models import ModelStore, ReadyModel, Report
from playground.proposers import DraftModelProposer
from playground.proposers.batched import BatchedDraftProposer, BatchProposer, PerSlotProposer
from playground.registry.errors import ModelError
from playground.run_setup import make_proposer

HINT = "The cost curve can be measured all the same; for a batch choose a Llama-family model."


def lean_weights(ready: ReadyModel) -> LeanWeights:
    """The weights that caches of many sequences run on. Raises ModelError for a model without them."""
    if not isinstance(ready.lm, LeanLM):
        name = ready.loaded.name
        raise ModelError(f"{name} cannot decode many sequences at once: it does not run on the lean decoder.", HINT)
    return ready.lm.weights


def make_batch_proposer(
    store: ModelStore, target: ReadyModel, settings: RunSettings, num_slots: int, capacity: int, report: Report
) -> BatchProposer:
    """Build the proposer the settings name for `num_slots` sequences of at most `capacity` tokens.

    Raises:
        ModelError: a draft that cannot be loaded, does not fit, or has another tokenizer.
        ValueError: a proposer that does not draft for a batch.
    """
    check_load(settings.proposer, settings.gamma)
    first, drafter = make_proposer(store, target, settings, report)
    if drafter is None:
        made = [first]

        def make():
            return made.pop() if made else make_proposer(store, target, settings, report)[0]

        return PerSlotProposer(make, num_slots)
    if not isinstance(first, DraftModelProposer):
        hint = "Choose a draft model of the target's family, or n-gram lookup."
        raise ModelError("A draft with another tokenizer does not draft for many sequences at once.", hint)
    if capacity > drafter.lm.context_limit:
        limit = drafter.lm.context_limit
        raise ValueError(f"The draft model takes at most {limit} tokens, prompt and answer together; choose fewer.")
    many = RaggedLM(lean_weights(drafter), num_slots, capacity)
    return BatchedDraftProposer(many, first.vocabulary, target.loaded.end_ids, first.greedy)
