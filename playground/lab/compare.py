"""Proposer × gamma × task: every arm on every prompt, interleaved with plain decoding.

One cycle is a prompt: plain, half of the arms, plain, the other half, plain; a speedup is held against the
mean of the plain runs around it, since a shared machine changes its pace. The order of arms turns from
prompt to prompt. All widths are warmed up before. A generator of frozen results; knows no pages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from playground.config import RunSettings
from playground.engine import generate
from playground.events import Event, Proposed, Verified
from playground.lab.compare_arms import PLAIN, Arm
from playground.metrics import RunMetrics
from playground.models import ModelStore, ReadyModel, Report
from playground.prompt import encode
from playground.registry.errors import ModelError
from playground.run_setup import make_proposer
from playground.theory import expected_tokens

WARM_UP_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Skipped:
    """An arm that cannot run here, and why."""

    arm: Arm
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """One arm on one prompt.

    Attributes:
        step_ms: one plain step then and there, the mean of the plain runs around this one.
        depths: drafted depth of every round, a tree's by its longest path.
        tested, accepted, drafted, committed, rounds: counts, as in metrics.
        draft_ms, verify_ms, other_ms: of the whole run.
        same: whether the text is plain decoding's, at temperature 0.
    """

    arm: str
    key: str
    task: str
    prompt: str
    temperature: float
    step_ms: float
    committed: int
    rounds: int
    drafted: int
    tested: int
    accepted: int
    depths: tuple[int, ...]
    draft_ms: float
    verify_ms: float
    other_ms: float
    same: bool | None

    @property
    def speedup(self) -> float:
        """Measured tokens/s over measured plain tokens/s, prefill apart."""
        return self.committed * self.step_ms / (self.draft_ms + self.verify_ms + self.other_ms)

    @property
    def acceptance_length(self) -> float:
        """Committed tokens per round."""
        return self.committed / self.rounds

    @property
    def alpha(self) -> float | None:
        """Accepted / tested."""
        return self.accepted / self.tested if self.tested else None

    @property
    def c(self) -> float | None:
        """Cost of one draft step in plain steps."""
        steps = sum(self.depths)
        return self.draft_ms / steps / self.step_ms if steps else None

    @property
    def width_cost(self) -> float:
        """Cost of one verifying pass in plain steps."""
        return self.verify_ms / self.rounds / self.step_ms

    @property
    def predicted(self) -> float:
        """Speedup that alpha, drafted depths and measured costs predict: Leviathan's formula, round by round."""
        alpha = self.alpha or 0.0
        tokens = sum(expected_tokens(alpha, depth) for depth in self.depths) / self.rounds
        cost = (self.draft_ms + self.verify_ms) / self.rounds / self.step_ms
        return tokens / cost


@dataclass(slots=True)
class _Follower:
    """Counts of one run."""

    metrics: RunMetrics
    depths: list[int]
    ids: list[int]

    def take(self, event: Event) -> None:
        self.metrics.update(event)
        if isinstance(event, Proposed):
            depths: list[int] = []
            for node in event.nodes:
                depths.append(1 if node.parent < 0 else depths[node.parent] + 1)
            self.depths.append(max(depths, default=0))
        elif isinstance(event, Verified):
            self.ids += [token.id for token in event.committed]


def compare(
    store: ModelStore, base: RunSettings, arms: list[Arm], prompts: dict[str, list[str]], done: set, report: Report
) -> Iterator[Skipped | Result]:
    """Measure every arm on every prompt.

    Args:
        base: what the arms have in common: target, precision, sampling, length. Its prompt is not used.
        prompts: by task.
        done: (arm key, prompt) pairs that need no measuring: an earlier sweep's.

    Raises:
        ModelError: the target cannot be loaded.
    """
    target = store.target(base.target, base.target_precision, report)
    able = []
    for number, arm in enumerate(arms):
        report("calibrating", f"Warming up: {arm.name}", number / len(arms))
        try:
            settings = replace(base, **arm.changes, prompt=next(iter(prompts.values()))[0])
            _run(store, target, replace(settings, max_new_tokens=WARM_UP_TOKENS), report)
            able.append(arm)
        except (ModelError, ValueError, TypeError) as error:
            words = f"{error.message} {error.hint}" if isinstance(error, ModelError) else str(error)
            yield Skipped(arm, words)
    total, number = sum(map(len, prompts.values())), 0
    for place in range(max(map(len, prompts.values()))):  # tasks in turn: a sweep that is stopped is still fair
        for task, texts in prompts.items():
            if place >= len(texts):
                continue
            turned = [*able[number % max(1, len(able)) :], *able[: number % max(1, len(able))]]
            left = [arm for arm in turned if (arm.key, texts[place]) not in done]
            report("measuring", f"Prompt {number + 1} of {total}: {task}", number / total)
            if left:
                yield from _cycle(store, target, replace(base, prompt=texts[place]), task, left, report)
            number += 1


def _cycle(store, target: ReadyModel, base: RunSettings, task: str, arms: list[Arm], report) -> Iterator[Result]:
    """One prompt: plain, some arms, plain, the others, plain."""
    half = max(1, len(arms) // 2)
    plain = _run(store, target, replace(base, **PLAIN.changes), report)
    for part in (arms[:half], arms[half:]):
        if not part:
            continue
        runs = [(arm, _run(store, target, replace(base, **arm.changes), report)) for arm in part]
        again = _run(store, target, replace(base, **PLAIN.changes), report)
        step_ms = sum(_step_ms(run) for run in (plain, again)) / 2
        for arm, run in runs:
            metrics = run.metrics
            yield Result(
                arm=arm.name,
                key=arm.key,
                task=task,
                prompt=base.prompt,
                temperature=base.temperature,
                step_ms=step_ms,
                committed=metrics.num_committed,
                rounds=metrics.num_rounds,
                drafted=metrics.num_drafted,
                tested=metrics.num_tested,
                accepted=metrics.num_accepted,
                depths=tuple(run.depths),
                draft_ms=metrics.draft_ms,
                verify_ms=metrics.verify_ms,
                other_ms=metrics.other_ms,
                same=run.ids == again.ids if base.temperature == 0 else None,
            )
        plain = again


def _step_ms(run: _Follower) -> float:
    return run.metrics.decode_ms / run.metrics.num_committed


def _run(store: ModelStore, target: ReadyModel, settings: RunSettings, report: Report) -> _Follower:
    proposer, _ = make_proposer(store, target, settings, report)
    _, ids = encode(target.loaded, settings)
    follower = _Follower(RunMetrics(), [], [])
    for event in generate(target.lm, proposer, ids, settings.spec, target.loaded.end_ids, target.decoder):
        follower.take(event)
    return follower
