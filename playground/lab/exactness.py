"""The claim tried on the real engine: many short runs with and without speculation, and their frequencies.

The first token of every run is held against the target's exact distribution, which one pass gives; the
later ones against plain decoding's, run by run with other seeds. A wrong rule of verification shows what
the test catches. Knows no pages: a generator that tells each run and ends with the verdict.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from playground.config import RunSettings, SpecConfig
from playground.engine import generate
from playground.events import Event, Finished, Verified
from playground.lab.statistics import Comparison, against_exact, against_sample
from playground.lab.wrong_rules import RIGHT, applied
from playground.lm import CachedLM
from playground.models import ModelStore, Report
from playground.prompt import encode
from playground.proposers import Proposer
from playground.run_setup import make_proposer
from playground.sampling import to_probs
from playground.text import Decoder
from playground.verify import Rule, verify_tree

NUM_SHOWN = 12
MIN_SAMPLES, ENDED = 20, "(the text had ended)"
PLAIN_SEEDS = 1_000_000  # seeds of the plain runs start here: the two samples are independent


@dataclass(frozen=True, slots=True)
class Sampled:
    """News of a test going on: runs done of both kinds, out of `total`."""

    num_done: int
    total: int


@dataclass(frozen=True, slots=True)
class Row:
    """One token at one position: its share with speculation and what it should be."""

    id: int
    text: str
    share: float
    wanted: float


@dataclass(frozen=True, slots=True)
class PositionResult:
    """One position of the output, from 1. `exact`: held against probabilities and not against a sample."""

    position: int
    exact: bool
    comparison: Comparison
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Exactness:
    """The verdict. `alpha` says that tokens were both accepted and refused: without either nothing was tested."""

    rule: str
    num_samples: int
    alpha: float | None
    positions: tuple[PositionResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every position passed."""
        return all(item.comparison.passed for item in self.positions)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is tested: a target, a prompt, and how ids become text."""

    target: CachedLM
    prompt_ids: list[int]
    end_ids: tuple[int, ...]
    decoder: Decoder


def try_exactness(
    subject: Subject, proposer: Proposer, config: SpecConfig, num_samples: int, rule: str = RIGHT
) -> Iterator[Sampled | Exactness]:
    """Decode `num_samples` short texts with the proposer and as many plainly, seeds apart.

    Args:
        config: temperature above 0; its `max_new_tokens` are the positions compared, at least 2, since the
            last token of a text is never drafted.
        rule: a name in wrong_rules.RULES.

    Raises:
        ValueError: temperature 0, where there is one text only, or too few tokens or samples.
    """
    if config.sampling.temperature == 0:
        raise ValueError("At temperature 0 there is one text only: choose a temperature above 0.")
    if config.max_new_tokens < 2 or num_samples < MIN_SAMPLES:
        raise ValueError(f"Exactness needs at least 2 tokens and {MIN_SAMPLES} samples.")
    guesser, judge = applied(rule, proposer)
    tally, speculative, plain = Tally(), [], []
    for number in range(num_samples):
        speculative.append(tally.follow(_run(subject, guesser, config, number, judge)))
        yield Sampled(2 * number + 1, 2 * num_samples)
        plain.append(Tally().follow(_run(subject, Proposer(), config, PLAIN_SEEDS + number)))
        yield Sampled(2 * number + 2, 2 * num_samples)
    positions = [_first(subject, config, speculative)]
    positions += [_later(subject, place, speculative, plain) for place in range(1, config.max_new_tokens)]
    alpha = tally.num_accepted / tally.num_tested if tally.num_tested else None
    yield Exactness(rule, num_samples, alpha, tuple(positions))


def exactness_of(
    store: ModelStore, settings: RunSettings, num_samples: int, rule: str, report: Report
) -> Iterator[Sampled | Exactness]:
    """Try the exactness of a person's settings. Raises ModelError and ValueError as a run does."""
    target = store.target(settings.target, settings.target_precision, report)
    proposer, _ = make_proposer(store, target, settings, report)
    _, ids = encode(target.loaded, settings)
    subject = Subject(target.lm, ids, target.loaded.end_ids, target.decoder)
    yield from try_exactness(subject, proposer, settings.spec, num_samples, rule)


@dataclass(slots=True)
class Tally:
    """What was tested and accepted over many runs."""

    num_tested: int = 0
    num_accepted: int = 0

    def follow(self, events: Iterator[Event]) -> tuple[int, ...]:
        """Count one run to its end and return its tokens."""
        ids: tuple[int, ...] = ()
        for event in events:
            if isinstance(event, Verified):
                self.num_tested += len(event.tested)
                self.num_accepted += sum(item.accepted for item in event.tested)
            elif isinstance(event, Finished):
                ids = event.token_ids
        return ids


def _run(subject: Subject, proposer: Proposer, config: SpecConfig, seed: int, rule: Rule = verify_tree):
    sampling = replace(config.sampling, seed=(config.sampling.seed + seed) % 2**31)
    spec = replace(config, sampling=sampling, stop_strings=())
    return generate(subject.target, proposer, subject.prompt_ids, spec, subject.end_ids, subject.decoder, rule=rule)


def _first(subject: Subject, config: SpecConfig, texts: list[tuple[int, ...]]) -> PositionResult:
    target, prompt = subject.target, subject.prompt_ids
    for _ in target.prefill(prompt[:-1]):
        pass
    probs = to_probs(target.extend(prompt[-1:]), config.sampling)[0].cpu()
    target.rollback(len(prompt) - 1)
    counts = _counts(texts, 0, len(probs))[:-1]
    comparison = against_exact(counts, probs)
    return PositionResult(1, True, comparison, _rows(subject, counts / counts.sum(), probs))


def _later(subject: Subject, place: int, texts: list[tuple[int, ...]], plain: list[tuple[int, ...]]) -> PositionResult:
    counts, wanted = (_counts(sample, place, subject.target.vocab_size) for sample in (texts, plain))
    rows = _rows(subject, counts / counts.sum(), wanted / wanted.sum())
    return PositionResult(place + 1, False, against_sample(counts, wanted), rows)


def _counts(texts: list[tuple[int, ...]], place: int, size: int) -> torch.Tensor:
    """How often each id stands at a place, (size + 1,); the last entry counts texts that ended before."""
    ids = [text[place] if place < len(text) else size for text in texts]
    return torch.bincount(torch.tensor(ids), minlength=size + 1).float()


def _rows(subject: Subject, shares: torch.Tensor, wanted: torch.Tensor) -> tuple[Row, ...]:
    likeliest = wanted.argsort(descending=True, stable=True)[:NUM_SHOWN].tolist()
    label = subject.decoder.label
    return tuple(
        Row(id, label(id) if id < subject.target.vocab_size else ENDED, float(shares[id]), float(wanted[id]))
        for id in likeliest
        if wanted[id] > 0
    )
