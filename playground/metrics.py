"""Events in, counters kept, rates derived: alpha, acceptance length, tokens/s, speedup, cost split.

Raw counters are stored, every rate is computed from them on demand, so a definition lives in one
place. Knows no torch: it runs on recorded events just as on live ones. A rate with nothing to
divide by is None, never 0 or 1.

`num_tested` counts positions: one per drafted token that was judged in a chain; in a tree one per depth
at which any sibling was judged, accepted when one of them was. So alpha is the chance that a position
is kept, whatever the width, which is what the closed forms take, with gamma the depth. `num_drafted`
counts all nodes: drafting is paid for each. The overlaps of the siblings judged add up to one position's:
their sum has the chance of acceptance there as its mean.
"""

from dataclasses import dataclass, field

from playground.config import PROPOSER_OPTIONS
from playground.events import Calibrated, Event, Failed, Finished, Prefilled, Proposed, Started, Verified


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """What one round did. Times in ms."""

    round: int
    num_drafted: int
    num_tested: int
    num_accepted: int
    num_committed: int
    final_kind: str
    draft_ms: float
    verify_ms: float
    other_ms: float
    context_length: int

    @property
    def alpha(self) -> float | None:
        """Accepted / tested in this round."""
        return _ratio(self.num_accepted, self.num_tested)

    @property
    def round_ms(self) -> float:
        """Wall time of the whole round."""
        return self.draft_ms + self.verify_ms + self.other_ms


def _is_lossy(started: Started) -> bool:
    """Whether a run, perhaps a stranger's recording, was asked for a lossy rule."""
    epsilon = started.settings.get("typical_epsilon", 0)
    known = "typical_epsilon" in PROPOSER_OPTIONS.get(started.proposer, ())
    return known and isinstance(epsilon, int | float) and epsilon > 0


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@dataclass(slots=True)
class RunMetrics:
    """Follows one run. Feed it every event in order with `update`; read the figures at any time."""

    rounds: list[RoundRecord] = field(default_factory=list)
    tested_by_position: list[int] = field(default_factory=list)
    accepted_by_position: list[int] = field(default_factory=list)
    num_drafted: int = 0
    num_tested: int = 0
    num_accepted: int = 0
    num_committed: int = 0
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    other_ms: float = 0.0
    sampling_ms: float = 0.0
    rollback_ms: float = 0.0
    prefill_ms: float = 0.0
    num_prompt: int = 0
    overlap_sum: float = 0.0
    drift_sum: float = 0.0
    is_lossy: bool = False
    baseline: Calibrated | None = None
    started: Started | None = None
    finished: Finished | Failed | None = None
    _proposed: Proposed | None = None

    def update(self, event: Event) -> None:
        """Take one event into account; kinds without figures are ignored."""
        if isinstance(event, Started):
            self.started, self.num_prompt = event, len(event.prompt_ids)
            self.is_lossy = _is_lossy(event)
        elif isinstance(event, Prefilled):
            self.prefill_ms += event.prefill_ms
        elif isinstance(event, Calibrated):
            self.baseline = event
        elif isinstance(event, Proposed):
            self._proposed = event
        elif isinstance(event, Verified):
            self._end_round(event)
        elif isinstance(event, Finished | Failed):
            self.finished = event

    def _end_round(self, event: Verified) -> None:
        proposed = self._proposed
        if proposed is None or proposed.round != event.round:
            raise ValueError(f"Round {event.round} was verified before it was proposed.")
        record = RoundRecord(
            round=event.round,
            num_drafted=len(proposed.nodes),
            num_tested=self._count_positions(event),
            num_accepted=sum(test.accepted for test in event.tested),
            num_committed=len(event.committed),
            final_kind=event.final_kind,
            draft_ms=proposed.draft_ms,
            verify_ms=event.verify_ms,
            other_ms=event.other_ms,
            context_length=event.context_length,
        )
        self.rounds.append(record)
        self.drift_sum += sum(1 - token.p for token in event.committed if token.kind == "accepted")
        self.num_drafted += record.num_drafted
        self.num_tested += record.num_tested
        self.num_accepted += record.num_accepted
        self.num_committed += record.num_committed
        self.draft_ms += record.draft_ms
        self.verify_ms += record.verify_ms
        self.other_ms += record.other_ms
        self.sampling_ms += event.sampling_ms
        self.rollback_ms += event.rollback_ms

    def _count_positions(self, event: Verified) -> int:
        """Count what was tested and accepted by depth; return the number of depths tested in this round."""
        position = -1  # tests go down one path: a new depth begins with the first one and after each acceptance
        deeper = True
        for test in event.tested:
            position += deeper
            if position == len(self.tested_by_position):
                self.tested_by_position.append(0)
                self.accepted_by_position.append(0)
            self.tested_by_position[position] += deeper
            self.accepted_by_position[position] += test.accepted
            self.overlap_sum += test.overlap
            deeper = test.accepted
        return position + 1

    @property
    def num_rounds(self) -> int:
        """Rounds so far; each is one target pass."""
        return len(self.rounds)

    @property
    def alpha(self) -> float | None:
        """Accepted / tested: the chance that a judged position is kept."""
        return _ratio(self.num_accepted, self.num_tested)

    @property
    def mean_overlap(self) -> float | None:
        """Mean Σ min(p, q) over tested positions: what alpha estimates, without the luck of u."""
        return _ratio(self.overlap_sum, self.num_tested)

    @property
    def drift(self) -> float | None:
        """Of a lossy run: how far its tokens' distributions were from the target's, mean total variation, 0..1.

        A guess kept for sure stood for the target's distribution p: at that token they differ by 1 − p(token).
        None for an exact run.
        """
        return _ratio(self.drift_sum, self.num_committed) if self.is_lossy else None

    @property
    def draft_efficiency(self) -> float | None:
        """Accepted / drafted (vLLM: draft acceptance rate); falls mechanically with gamma."""
        return _ratio(self.num_accepted, self.num_drafted)

    @property
    def acceptance_length(self) -> float | None:
        """Committed tokens per round, the target's own token included; plain decoding = 1."""
        return _ratio(self.num_committed, self.num_rounds)

    @property
    def decode_ms(self) -> float:
        """Time spent in rounds: draft + verify + other, prefill and calibration apart."""
        return self.draft_ms + self.verify_ms + self.other_ms

    @property
    def tokens_per_second(self) -> float | None:
        """Committed tokens per second of decoding, prefill apart."""
        return _ratio(self.num_committed * 1000.0, self.decode_ms)

    @property
    def baseline_tokens_per_second(self) -> float | None:
        """Plain decoding by the same engine on the same prompt, as measured before the first round."""
        return self.baseline.tokens_per_second if self.baseline else None

    @property
    def speedup(self) -> float | None:
        """Measured tokens/s ÷ measured plain tokens/s. Below 1 means slower, and says so."""
        if self.baseline is None or self.tokens_per_second is None:
            return None
        return _ratio(self.tokens_per_second, self.baseline.tokens_per_second)

    @property
    def overhead_share(self) -> float | None:
        """Share of the decoding time spent outside draft and target passes."""
        return _ratio(self.other_ms, self.decode_ms)

    @property
    def acceptance_by_position(self) -> list[float | None]:
        """Accepted / tested at draft position (in a tree: depth) 1, 2, …: each conditional on reaching it."""
        return [
            _ratio(kept, seen) for kept, seen in zip(self.accepted_by_position, self.tested_by_position, strict=True)
        ]
