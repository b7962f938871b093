"""What a run needs besides its target: the proposer chosen, and a record of what it runs on.

`BUILDERS` is the one place where a proposer's name becomes a proposer; a policy for gamma wraps any of them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from playground import registry
from playground.config import PROPOSER_OPTIONS, RunSettings, SpecConfig
from playground.engine import generate
from playground.events import Finished, Verified
from playground.gamma import POLICIES, ConfidencePolicy, GammaPolicy
from playground.lm import another_cache
from playground.models import ModelStore, ReadyModel, Report
from playground.prompt import encode
from playground.proposers import (
    AdaptiveProposer,
    DraftModelProposer,
    EagleProposer,
    EarlyExitProposer,
    LookaheadProposer,
    MedusaProposer,
    NgramProposer,
    NoisyOracleProposer,
    OracleProposer,
    Proposer,
    RandomProposer,
    SuffixProposer,
    TranslatedProposer,
)
from playground.proposers.medusa import read_accuracies
from playground.registry import bundled, precision
from playground.registry.compat import pair_notice, token_mismatch
from playground.registry.errors import ModelError
from playground.typical import typical_rule
from playground.verify import Rule, verify_tree

Built = tuple[Proposer, ReadyModel | None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What a builder has to work with."""

    store: ModelStore
    target: ReadyModel
    settings: RunSettings
    report: Report
    own_caches: bool = False  # decode beside other runs of the same models

    def corpus_ids(self) -> list[int]:
        """The corpus in the target's tokens."""
        if not self.settings.corpus:
            return []
        self.report("loading", "Reading the corpus", None)
        return self.target.loaded.tokenizer(self.settings.corpus, add_special_tokens=False, verbose=False)["input_ids"]

    @property
    def embedding(self) -> torch.Tensor:
        """The target's embedding, (ids, hidden)."""
        return self.target.loaded.model.get_input_embeddings().weight.detach()

    def answer_ids(self) -> list[int]:
        """The target's greedy answer to the prompt, by plain decoding. Raises ValueError as `encode` does."""
        target, limit = self.target, self.settings.max_new_tokens
        _, prompt = encode(target.loaded, self.settings)
        plain = SpecConfig(gamma=0, max_new_tokens=limit)
        found: tuple[int, ...] = ()
        for event in generate(target.lm, Proposer(), prompt, plain, target.loaded.end_ids, target.decoder):
            if isinstance(event, Verified):
                self.report("calibrating", "Decoding the answer that the oracle replays", event.round / limit)
            elif isinstance(event, Finished):
                found = event.token_ids
        return list(found)

    def drafting(self, ready: ReadyModel) -> Built:
        """A proposer that drafts with a model of the target's own tokens."""
        if self.own_caches:
            ready = replace(ready, lm=another_cache(ready.lm))
        ids = self.target.loaded.end_ids, self.target.lm.vocab_size
        greedy = self.settings.greedy_draft and "greedy_draft" in PROPOSER_OPTIONS[self.settings.proposer]
        return DraftModelProposer(ready.lm, *ids, greedy), ready


def make_proposer(
    store: ModelStore, target: ReadyModel, settings: RunSettings, report: Report, own_caches: bool = False
) -> tuple[Proposer, ReadyModel | None]:
    """Build the proposer the settings name, loading its model where it has one.

    With `own_caches` the models' caches are its own, so that it may draft beside other runs. A draft with
    another tokenizer keeps its one cache.

    Returns:
        The proposer, and the model it drafts with or None.

    Raises:
        ModelError: no draft chosen, or one that cannot be loaded or does not fit the target.
        ValueError: a prompt that an oracle cannot answer, being empty or too long.
    """
    setup = Setup(store, target, settings, report, own_caches)
    proposer, ready = BUILDERS[settings.proposer](setup)
    policy = _policy(setup.settings)
    return proposer if policy is None else AdaptiveProposer(proposer, policy), ready


def _policy(settings: RunSettings) -> GammaPolicy | None:
    """The policy that wraps the proposer; a constant gamma needs none."""
    if settings.gamma_policy == "constant" or settings.proposer == "none":
        return None
    if settings.gamma_policy == "confidence":
        return ConfidencePolicy(settings.confidence_threshold)
    return POLICIES[settings.gamma_policy]()


def _ngram(setup: Setup) -> Built:
    sizes = setup.settings.ngram_min, setup.settings.ngram_max
    return NgramProposer(*sizes, setup.corpus_ids()), None


def _suffix(setup: Setup) -> Built:
    return SuffixProposer(setup.settings.min_share, setup.corpus_ids()), None


def _draft(setup: Setup) -> Built:
    settings, target = setup.settings, setup.target
    known = (option.id for option in registry.draft_options(settings.target) if option.available)
    name = settings.draft.strip() or next(known, "")
    if not name:
        hint = "Choose one in the list, or type a Hub id or a local folder; n-gram and quantized copy need none."
        raise ModelError("No draft model is chosen.", hint)
    arguments = (target, name, settings.draft_precision, setup.report)
    ready = setup.store.drafter(*arguments, translate=True)
    if not token_mismatch(target.loaded, ready.loaded):
        return setup.drafting(ready)
    mine, other = target.loaded.tokenizer, ready.loaded.tokenizer
    return TranslatedProposer(ready.lm, ready.loaded.end_ids, other, mine, target.lm.vocab_size), ready


def _quantized(setup: Setup) -> Built:
    chosen = setup.settings.quantized_precision
    if chosen == "auto":
        chosen = precision.fastest_quantized(registry.device())
    return setup.drafting(setup.store.drafter(setup.target, setup.settings.target, chosen, setup.report))


def _early_exit(setup: Setup) -> Built:
    target, layers = setup.target, setup.settings.exit_layers
    adapters = setup.store.head(target, "early-exit", setup.report) if setup.settings.adapter else None
    try:
        return EarlyExitProposer(target.lm, layers, target.loaded.end_ids, adapters), None
    except ValueError as error:
        raise ModelError(str(error), "Choose another number of layers, or turn the adapter off.") from error


def _medusa(setup: Setup) -> Built:
    target, num_nodes = setup.target, setup.settings.tree_nodes
    heads = setup.store.head(target, "medusa", setup.report)
    accuracies = read_accuracies(bundled.trained(target.loaded.name, "medusa")) if num_nodes else ()
    return MedusaProposer(heads, setup.embedding, target.lm.vocab_size, accuracies, num_nodes), None


def _eagle(setup: Setup) -> Built:
    target, settings = setup.target, setup.settings
    head = setup.store.head(target, "eagle", setup.report)
    tree = settings.tree_nodes, settings.tree_top_k
    return EagleProposer(head, setup.embedding, target.loaded.end_ids, target.lm.vocab_size, *tree), None


def _lookahead(setup: Setup) -> Built:
    settings = setup.settings
    return LookaheadProposer(settings.window, settings.ngram_size, settings.num_guesses, settings.guess_tree), None


def _self(setup: Setup) -> Built:
    return setup.drafting(setup.store.twin(setup.target, setup.report))


def _noisy_oracle(setup: Setup) -> Built:
    alpha, num_tokens = setup.settings.noise_alpha, setup.target.lm.vocab_size
    return NoisyOracleProposer(setup.answer_ids(), alpha, num_tokens), None


BUILDERS: dict[str, Callable[[Setup], Built]] = {
    "none": lambda setup: (Proposer(), None),
    "ngram": _ngram,
    "suffix": _suffix,
    "draft": _draft,
    "quantized": _quantized,
    "early-exit": _early_exit,
    "medusa": _medusa,
    "eagle": _eagle,
    "lookahead": _lookahead,
    "self": _self,
    "oracle": lambda setup: (OracleProposer(setup.answer_ids()), None),
    "noisy-oracle": _noisy_oracle,
    "random": lambda setup: (RandomProposer(setup.target.lm.vocab_size), None),
}


def rule_of(settings: RunSettings) -> Rule:
    """What judges the drafts: the exact rule, unless the settings ask for a lossy one."""
    return typical_rule(settings.typical_epsilon) if settings.is_lossy else verify_tree


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
