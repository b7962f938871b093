"""What a load test is asked for and what it finds: plain values, no torch.

A workload is the same for every batch size: so many prompts, each continued by at most so many tokens, served in
order with B of them at once; when one ends, the next takes its slot, so that the batch stays full until the tokens
asked for are committed. Times are those of rounds: reading prompts is apart, as in every speedup here.
"""

import statistics
from dataclasses import asdict, dataclass

from playground.config import RANGES
from playground.lab.cost_model import PassCost
from playground.theory import expected_tokens

BATCHES = (1, 2, 4, 8, 16)
BATCHABLE = ("ngram", "suffix", "draft", "quantized", "self", "random")  # proposers that draft for a batch
LENGTH, CYCLES = 32, 1
MAX_BATCH, MAX_LENGTH, MAX_CYCLES = 64, 512, 9


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Which batch sizes are decoded for real.

    Attributes:
        batches: sequences at once, in ascending order.
        length: new tokens of each sequence, at most.
        cycles: runs with speculation per batch size, each between two plain ones.
        prompts: the workload is the largest batch size's number of them, from the first on, in turn.
    """

    batches: tuple[int, ...]
    prompts: tuple[str, ...]
    length: int = LENGTH
    cycles: int = CYCLES

    def __post_init__(self):
        if not self.batches or not all(1 <= batch <= MAX_BATCH for batch in self.batches):
            raise ValueError(f"Batch sizes must be from 1 to {MAX_BATCH}, at least one of them.")
        if not 2 <= self.length <= MAX_LENGTH:
            raise ValueError(f"The tokens of a sequence must be from 2 to {MAX_LENGTH}, not {self.length}.")
        if not 1 <= self.cycles <= MAX_CYCLES:
            raise ValueError(f"Cycles must be from 1 to {MAX_CYCLES}, not {self.cycles}.")
        if not self.prompts:
            raise ValueError("A load needs at least one prompt.")
        object.__setattr__(self, "batches", tuple(sorted(set(self.batches))))

    @property
    def workload(self) -> list[str]:
        """The prompts in the order in which they are served."""
        return [self.prompts[number % len(self.prompts)] for number in range(self.batches[-1])]


def check_load(proposer: str, gamma: int) -> None:
    """Raise ValueError for a proposer that cannot draft for a batch, or a gamma out of range."""
    if proposer not in BATCHABLE:
        raise ValueError(f"{proposer} does not draft for many sequences at once: choose of {', '.join(BATCHABLE)}.")
    if RANGES["gamma"].check("gamma", gamma) < 1:
        raise ValueError("gamma must be at least 1 here: plain decoding is measured anyway.")


@dataclass(frozen=True, slots=True)
class LoadRun:
    """One run of the workload with `batch` sequences at once.

    Attributes:
        num_tokens: committed in all.
        num_passes: rounds of the whole batch, each one target pass.
        num_rows: tokens fed to the target in all.
        context: mean length of a sequence, in tokens.
        depths: drafted tokens of every sequence in every round, `batch` for each round.
        draft_ms, verify_ms, other_ms: in all.
    """

    batch: int
    num_tokens: int
    num_passes: int
    num_rows: int
    context: float
    depths: tuple[int, ...]
    num_tested: int
    num_accepted: int
    draft_ms: float
    verify_ms: float
    other_ms: float

    @property
    def num_draft_steps(self) -> int:
        """Steps of drafting in all: in each round as many as its longest draft has tokens."""
        starts = range(0, len(self.depths), self.batch)
        return sum(max(self.depths[start : start + self.batch]) for start in starts)

    @property
    def ms_per_token(self) -> float:
        """Milliseconds per committed token of the whole batch."""
        return (self.draft_ms + self.verify_ms + self.other_ms) / self.num_tokens

    @property
    def throughput(self) -> float:
        """Tokens per second, all sequences together."""
        return 1000 / self.ms_per_token

    @property
    def latency_ms(self) -> float:
        """Milliseconds per token as one sequence sees it: the batch is always full."""
        return self.batch * self.ms_per_token


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One batch size: runs with speculation, each between two plain ones, and what the cost curve predicts.

    Attributes:
        plain: one more run than `speculative`; the i-th of those ran between plain[i] and plain[i + 1].
        predicted: speedup by formula from measured alpha, drafted depths, draft time and the cost curve.
        same: share of sequences whose tokens equal plain decoding's as far as both go; None when sampled.
    """

    batch: int
    plain: tuple[LoadRun, ...]
    speculative: tuple[LoadRun, ...]
    predicted: float
    same: float | None

    @property
    def speedups(self) -> list[float]:
        """Measured tokens/s with speculation over the plain runs around it, run by run."""
        around = zip(self.plain, self.plain[1:], strict=False)
        steps = [(before.ms_per_token + after.ms_per_token) / 2 for before, after in around]
        return [step / run.ms_per_token for step, run in zip(steps, self.speculative, strict=True)]

    @property
    def speedup(self) -> float:
        """Their median."""
        return statistics.median(self.speedups)

    @property
    def alpha(self) -> float | None:
        """Accepted / tested, over all runs."""
        tested = sum(run.num_tested for run in self.speculative)
        return sum(run.num_accepted for run in self.speculative) / tested if tested else None

    @property
    def c(self) -> float | None:
        """Cost of one draft step of the batch in plain rounds of as many sequences; None when nothing was drafted."""
        steps = sum(run.num_draft_steps for run in self.speculative)
        if not steps:
            return None
        plain_ms = statistics.median(run.latency_ms for run in self.plain)
        return sum(run.draft_ms for run in self.speculative) / steps / plain_ms

    @property
    def drafted(self) -> float:
        """Mean drafted tokens per sequence and round."""
        depths = [depth for run in self.speculative for depth in run.depths]
        return statistics.fmean(depths)

    def to_dict(self) -> dict:
        """Plain values for JSON, derived figures included; the depths only as their mean."""
        runs = {
            kind: [
                {name: value for name, value in asdict(run).items() if name != "depths"}
                | {"throughput": run.throughput, "latency_ms": run.latency_ms}
                for run in getattr(self, kind)
            ]
            for kind in ("plain", "speculative")
        }
        figures = {"speedup": self.speedup, "speedups": self.speedups, "predicted": self.predicted}
        figures |= {"alpha": self.alpha, "c": self.c, "drafted": self.drafted, "same": self.same}
        return {"batch": self.batch} | figures | runs


def predicted(run: LoadRun, plain_ms: float, cost: PassCost) -> float:
    """Speedup E / (γ·c + w) that measured alpha, drafted depths, draft time and the cost curve predict for a run.

    E: Leviathan's formula for every sequence and round by its drafted depth. γ·c: time of drafting in plain rounds.
    w: by the curve, a pass over the mean number of rows in passes over one row per sequence.

    Args:
        plain_ms: a plain round of as many sequences, measured.
    """
    alpha = run.num_accepted / run.num_tested if run.num_tested else 0.0
    tokens = statistics.fmean(expected_tokens(alpha, depth) for depth in run.depths)
    narrow = cost.ms(run.batch, run.batch, run.context)
    wide = cost.ms(run.num_rows / run.num_passes, run.batch, run.context)
    return tokens / (run.draft_ms / run.num_passes / plain_ms + wide / narrow)
