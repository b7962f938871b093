"""The models in memory: one target and its drafters, ready to decode, loaded on demand.

Turns (name, precision) into a `CachedLM` with its decoder; warms it up and chooses the thread
count by measuring. Changing the target drops everything else. Knows nothing of runs or pages.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from playground import registry
from playground.heads import Head, load_head
from playground.lm import CachedLM, LeanLM, another_cache, wrap
from playground.registry import bundled
from playground.registry.compat import check_pair, check_translation, num_usable, token_mismatch
from playground.registry.errors import ModelError
from playground.registry.loading import LoadedModel
from playground.text import Decoder
from playground.threads import choose_threads

Report = Callable[[str, str, float | None], None]
MAX_DRAFTERS = 2  # a draft model and a quantized copy: switching between them reloads nothing
TARGET_WIDTHS = 17  # tokens in the widest pass a chain can ask for
DRAFTER_WIDTHS = 2  # a drafter takes one token at a time, two after a full round


@dataclass(slots=True)
class ReadyModel:
    """A loaded model behind CachedLM."""

    key: tuple[str, str]  # name, precision asked for
    loaded: LoadedModel
    lm: CachedLM
    decoder: Decoder


class ModelStore:
    """Holds the target and its drafters. Not thread-safe: the session's lock guards it."""

    def __init__(self):
        self._target: ReadyModel | None = None
        self._drafters: dict[tuple[str, str], ReadyModel] = {}
        self._twin: ReadyModel | None = None
        self._heads: dict[str, Head] = {}  # recipe → the target's

    def target(self, name: str, precision: str, report: Report) -> ReadyModel:
        """Return the target, loading it when another one (or none) is in memory. Raises ModelError."""
        if self._target is None or self._target.key != (name, precision):
            ready = self._load(name, precision, TARGET_WIDTHS, report)
            self._choose_threads(ready.lm, report)
            self._target, self._drafters, self._twin, self._heads = ready, {}, None, {}
            _tidy(ready.lm)
        return self._target

    def twin(self, target: ReadyModel, report: Report) -> ReadyModel:
        """Return the target over a second cache: its weights stay once in memory."""
        if self._twin is None:
            lm = another_cache(target.lm)
            self._warm_up(lm, DRAFTER_WIDTHS, report)
            self._twin = replace(target, lm=lm)
        return self._twin

    def head(self, target: ReadyModel, recipe: str, report: Report) -> Head:
        """Return the head trained for the target, bound to it. Raises ModelError when there is none."""
        if recipe not in self._heads:
            folder = bundled.trained(target.loaded.name, recipe)
            report("loading", f"Loading the {recipe} head", None)
            lean = isinstance(target.lm, LeanLM)
            try:
                self._heads[recipe] = load_head(folder, target.lm.weights if lean else target.loaded.model)
            except (ValueError, OSError) as error:
                hint = f"Train it again: python -m playground train {recipe} --target {target.loaded.name}"
                raise ModelError(f"The {recipe} head cannot be used: {error}", hint) from error
        return self._heads[recipe]

    def drafter(
        self, target: ReadyModel, name: str, precision: str, report: Report, translate: bool = False
    ) -> ReadyModel:
        """Return a model that drafts for `target`, checked to share its tokens. Raises ModelError.

        With `translate` its tokens may be others, if its text can be encoded again for the target.
        """
        key = (name, precision)
        ready = self._drafters.pop(key, None)
        while len(self._drafters) >= MAX_DRAFTERS:
            del self._drafters[next(iter(self._drafters))]
        if ready is None:
            _tidy(target.lm)
            ready = self._load(name, precision, DRAFTER_WIDTHS, report, drafts=True)
            translated = translate and token_mismatch(target.loaded, ready.loaded)
            (check_translation if translated else check_pair)(target.loaded, ready.loaded)
        self._drafters[key] = ready  # most recently used last
        return ready

    def _load(self, name: str, precision: str, num_widths: int, report: Report, drafts: bool = False) -> ReadyModel:
        loaded = registry.load(name, precision, report)
        report("loading", f"Preparing {loaded.name} for decoding", None)
        head_ids = torch.tensor(loaded.draft_ids) if drafts and loaded.draft_ids else None
        size = num_usable(loaded), loaded.context_limit
        try:
            lm = wrap(loaded.model, loaded.precision, *size, consume=True, head_ids=head_ids)
        except ValueError as error:
            raise ModelError(str(error), "Choose another precision or another model.") from error
        self._warm_up(lm, num_widths, report)
        return ReadyModel((name, precision), loaded, lm, Decoder(loaded.tokenizer))

    @staticmethod
    def _warm_up(lm: CachedLM, num_widths: int, report: Report) -> None:
        """Run every width once: the first pass of each is slow while kernels are prepared."""
        token = lm.vocab_size // 2
        for width in range(1, min(num_widths, lm.context_limit) + 1):
            report("loading", "Warming up", width / num_widths)
            lm.reset()
            lm.extend([token] * width)
        lm.reset()

    @staticmethod
    def _choose_threads(lm: CachedLM, report: Report) -> None:
        if lm.device.type != "cpu":
            return
        report("loading", "Choosing the number of threads by measuring", None)
        token = lm.vocab_size // 2

        def step() -> None:
            lm.reset()
            lm.extend([token])
            lm.extend([token] * 4)

        choose_threads(step)
        lm.reset()


def _tidy(lm: CachedLM) -> None:
    """Give memory of dropped models back before it is asked for again."""
    gc.collect()
    if lm.device.type == "cuda":
        torch.cuda.empty_cache()
