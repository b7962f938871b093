"""The things a benchmark compares: our engine and transformers' generate, timed the same way.

An arm decodes one prompt greedily and reports tokens and seconds of decoding, prefill apart. Both
sides use the same weights, precision, prompt, number of tokens and gamma. Knows no reports.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch

from playground.config import DEFAULT_TREE, RANGES, SpecConfig
from playground.engine import generate
from playground.heads import load_head
from playground.lm import CachedLM, LeanLM
from playground.metrics import RunMetrics
from playground.proposers import EagleProposer, MedusaProposer, Proposer
from playground.proposers.medusa import read_accuracies
from playground.registry import bundled
from playground.registry.loading import LoadedModel
from playground.text import Decoder

TREE_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """One decoding: `seconds` for `num_tokens` tokens; `metrics` for our engine only."""

    token_ids: tuple[int, ...]
    num_tokens: int
    seconds: float
    metrics: RunMetrics | None = None

    @property
    def tokens_per_second(self) -> float:
        """Decoding speed, prefill apart."""
        return self.num_tokens / self.seconds


Arm = Callable[[list[int], int], Measured]  # (prompt ids, tokens to make) → Measured


def engine_arm(target: CachedLM, proposer: Proposer, gamma: int, decoder: Decoder) -> Arm:
    """Our engine with one proposer; end tokens are ignored so that every arm makes the same number."""

    def run(ids: list[int], num_tokens: int) -> Measured:
        metrics = RunMetrics()
        config = SpecConfig(gamma=gamma, max_new_tokens=num_tokens)
        for event in generate(target, proposer, ids, config, (), decoder):
            metrics.update(event)
        made = tuple(metrics.finished.token_ids)
        return Measured(made, len(made), metrics.decode_ms / 1000, metrics)

    return run


def trained_arms(target: LeanLM, loaded: LoadedModel, decoder: Decoder) -> dict[str, Arm]:
    """The bundled heads of a target as trees of DEFAULT_TREE tokens, by recipe. Raises ModelError without heads."""
    embedding = loaded.model.get_input_embeddings().weight.detach()
    folders = {recipe: bundled.trained(loaded.name, recipe) for recipe in ("eagle", "medusa")}
    eagle, medusa = (load_head(folders[recipe], target.weights) for recipe in folders)
    top_k = int(RANGES["tree_top_k"].default)
    accuracies = read_accuracies(folders["medusa"])
    proposers = {
        "eagle": EagleProposer(eagle, embedding, (), target.vocab_size, DEFAULT_TREE, top_k),
        "medusa": MedusaProposer(medusa, embedding, target.vocab_size, accuracies, DEFAULT_TREE),
    }
    return {name: engine_arm(target, proposer, TREE_DEPTH, decoder) for name, proposer in proposers.items()}


class _Clock:
    """A streamer that notes when tokens arrive: the first call brings the prompt, the next a token."""

    def __init__(self):
        self.times: list[float] = []
        self.counts: list[int] = []

    def put(self, value: torch.Tensor) -> None:
        self.times.append(perf_counter())
        self.counts.append(value.numel())

    def end(self) -> None:
        """Nothing to flush."""


def generate_arm(model: Any, **options: Any) -> Arm:
    """transformers' generate, greedy, with `options` (assistant_model=…, prompt_lookup_num_tokens=…).

    Timed from the first token on, so that prefill and set-up stay out.
    """

    def run(ids: list[int], num_tokens: int) -> Measured:
        clock, inputs = _Clock(), torch.tensor([ids])
        with torch.inference_mode():
            out = model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=num_tokens,
                min_new_tokens=num_tokens,
                do_sample=False,
                streamer=clock,
                **options,
            )
        timed = sum(clock.counts[2:])
        return Measured(tuple(out[0, len(ids) :].tolist()), timed, clock.times[-1] - clock.times[1])

    return run


def first_layers(model: Any, num_layers: int) -> Any:
    """A draft model that is the target's first layers, sharing its weights: poor, but of the same tokens."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = num_layers
    with torch.device("meta"):
        draft = type(model)(config)
    draft.model.embed_tokens = model.model.embed_tokens
    draft.model.layers = model.model.layers[:num_layers]
    draft.model.norm = model.model.norm
    draft.model.rotary_emb = model.model.rotary_emb
    draft.lm_head = model.lm_head
    draft.generation_config = copy.deepcopy(model.generation_config)
    return draft.eval()
