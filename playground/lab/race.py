"""A race: plain decoding and a few proposers on one prompt and seed, each with a cache of its own.

They share one machine, so they take turns: the next round belongs to the lane whose own clock is behind.
At every moment all clocks are about equal, and the picture is that of lanes with a machine each. Only
rounds count; prefill is apart. Repeats give the spread. Knows no pages.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from playground.config import RunSettings
from playground.engine import generate
from playground.events import Event, Finished, Proposed, Verified
from playground.lm import another_cache
from playground.models import ModelStore, ReadyModel, Report
from playground.prompt import encode
from playground.run_setup import make_proposer

WARM_UP_TOKENS = 12
MAX_LANES = 4


@dataclass(frozen=True, slots=True)
class LaneEvent:
    """What one lane says, and its own clock then. Repeats count from 0; only repeat 0 is shown token by token."""

    lane: int
    repeat: int
    clock_ms: float
    event: Event


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a lane's text leaves that of lane 0.

    Attributes:
        index: of the first differing token.
        ids: lane 0's token and the lane's, -1 where a text had ended.
        gap: logits between the target's two likeliest tokens there, in lane 0; None when it was not shown.
    """

    index: int
    ids: tuple[int, int]
    gap: float | None

    @property
    def near_tie(self) -> bool:
        """Whether half precision alone may flip these two: the gap is within its rounding."""
        return self.gap is not None and self.gap < NEAR_TIE


NEAR_TIE = 0.15  # logits are some 20 in size, and bfloat16 keeps 8 bits of each number on the way to them


@dataclass(frozen=True, slots=True)
class LaneResult:
    """One lane at the end: tokens/s and speedup over lane 0 of each repeat, and whether its text is the same."""

    settings: RunSettings
    tokens_per_second: tuple[float, ...]
    speedups: tuple[float, ...]
    acceptance_length: float
    difference: Difference | None

    @property
    def speedup(self) -> float:
        """Median over the repeats."""
        return statistics.median(self.speedups)


@dataclass(slots=True)
class _Lane:
    settings: RunSettings
    target: ReadyModel
    proposer: object
    clock_ms: float = 0.0
    num_rounds: int = 0
    token_ids: list[int] = field(default_factory=list)
    gaps: list[float | None] = field(default_factory=list)

    def start(self, ids: list[int], limit: int | None = None) -> Iterator[Event]:
        """Begin the lane's run anew."""
        self.clock_ms, self.num_rounds, self.token_ids, self.gaps = 0.0, 0, [], []
        spec = self.settings.spec
        spec = spec if limit is None else replace(spec, max_new_tokens=min(limit, spec.max_new_tokens))
        target = self.target
        return generate(target.lm, self.proposer, ids, spec, target.loaded.end_ids, target.decoder)

    def follow(self, event: Event) -> None:
        """Keep clock and text."""
        if isinstance(event, Proposed):
            self.clock_ms += event.draft_ms
        elif isinstance(event, Verified):
            self.clock_ms += event.verify_ms + event.other_ms
            self.num_rounds += 1
            self.token_ids += [token.id for token in event.committed]
            self.gaps += _gaps(event)


def race(
    store: ModelStore, settings: list[RunSettings], repeats: int, report: Report
) -> Iterator[LaneEvent | list[LaneResult]]:
    """Race the settings, lane 0 being what the others are measured against; ends with a list of results.

    Args:
        settings: up to four, of one target, precision and prompt.
        repeats: runs of each lane, at least 1.

    Raises:
        ModelError, ValueError: as a run does, and when the lanes do not share target and prompt.
    """
    if not 1 <= len(settings) <= MAX_LANES or repeats < 1:
        raise ValueError(f"A race has 1 to {MAX_LANES} lanes and at least one repeat.")
    if len({(lane.target, lane.target_precision, lane.prompt, lane.system_prompt) for lane in settings}) > 1:
        raise ValueError("All lanes of a race need the same target, precision and prompt.")
    target = store.target(settings[0].target, settings[0].target_precision, report)
    _, ids = encode(target.loaded, settings[0])
    lanes = []
    for chosen in settings:
        own = replace(target, lm=another_cache(target.lm))
        lanes.append(_Lane(chosen, own, make_proposer(store, own, chosen, report, own_caches=True)[0]))
    for number, lane in enumerate(lanes):
        report("calibrating", "Warming up the lanes", number / len(lanes))
        for _ in lane.start(ids, WARM_UP_TOKENS):
            pass
    speeds: list[list[float]] = [[] for _ in lanes]
    for repeat in range(repeats):
        yield from _heat(lanes, ids, repeat)
        for lane, found in zip(lanes, speeds, strict=True):
            found.append(1000 * len(lane.token_ids) / lane.clock_ms)
    yield [_result(lane, lanes[0], mine, speeds[0]) for lane, mine in zip(lanes, speeds, strict=True)]


def _heat(lanes: list[_Lane], ids: list[int], repeat: int) -> Iterator[LaneEvent]:
    """All lanes once: first their prompts, then rounds, always of the lane whose clock is behind."""
    runs = {number: lane.start(ids) for number, lane in enumerate(lanes)}
    try:
        while runs:
            number = min(runs, key=lambda number: (lanes[number].num_rounds > 0, lanes[number].clock_ms, number))
            for event in runs[number]:
                lanes[number].follow(event)
                yield LaneEvent(number, repeat, lanes[number].clock_ms, event)
                if isinstance(event, Finished):
                    del runs[number]
                if isinstance(event, Finished | Verified):
                    break
    finally:
        for run in runs.values():
            run.close()


def _gaps(event: Verified) -> list[float | None]:
    """For each committed token, the gap in logits between the target's two likeliest there, where it was shown."""
    path = [place for place, test in enumerate(event.tested) if test.accepted]
    places = [*path, len(event.positions) - 1][: len(event.committed)]
    found: list[float | None] = []
    for place in places:
        top = [item.logit for item in event.positions[place].target] if place < len(event.positions) else []
        ordered = sorted((value for value in top if value is not None), reverse=True)
        found.append(ordered[0] - ordered[1] if len(ordered) > 1 else None)
    return found


def _result(lane: _Lane, first: _Lane, mine: list[float], plain: list[float]) -> LaneResult:
    speedups = tuple(speed / base for speed, base in zip(mine, plain, strict=True))
    length = len(lane.token_ids) / lane.num_rounds
    return LaneResult(lane.settings, tuple(mine), speedups, length, difference(first, lane))


def difference(first: _Lane, lane: _Lane) -> Difference | None:
    """The first token in which two texts differ, or None."""
    for index in range(max(len(first.token_ids), len(lane.token_ids))):
        pair = tuple(ids[index] if index < len(ids) else -1 for ids in (first.token_ids, lane.token_ids))
        if pair[0] != pair[1]:
            return Difference(index, pair, first.gaps[index] if index < len(first.gaps) else None)
    return None
