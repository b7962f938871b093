"""The benchmark: our engine against transformers' generate, interleaved, as ratios with spread.

Each cycle runs every arm once on one prompt (A B C A B C …), so that a busy moment of the machine
hits all of them; ratios are taken within a cycle, then medians, minima and maxima over cycles.
Nothing here is compared across machines or moments.
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from time import perf_counter

import torch

from playground.config import DEFAULT_TARGET
from playground.lab.arms import Arm, engine_arm, first_layers, generate_arm
from playground.lm import wrap
from playground.presets import PRESETS
from playground.proposers import DraftModelProposer, NgramProposer, Proposer
from playground.registry import environment, load
from playground.registry.compat import num_usable
from playground.text import Decoder
from playground.theory import predicted_speedup
from playground.threads import choose_threads

GAMMA = 5
QUANTIZED_GAMMA = 4
NGRAM_SIZES = (2, 4)
DRAFT_LAYERS = 4
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio over interleaved cycles."""

    median: float
    min: float
    max: float
    count: int


def ratio(pairs: list[tuple[float, float]]) -> Ratio:
    """Summarise the ratios a/b of `pairs`. Raises ValueError when there is none."""
    if not pairs:
        raise ValueError("No measurements to compare.")
    values = [a / b for a, b in pairs]
    return Ratio(statistics.median(values), min(values), max(values), len(values))


class Bench:
    """Loads the bundled target once and times arms on presets."""

    def __init__(self, precision: str = "bfloat16", report: Report = print):
        self._report = report
        report(f"Loading {DEFAULT_TARGET} in {precision}")
        loaded = load(DEFAULT_TARGET, precision, lambda *_: None)
        self.tokenizer, decoder = loaded.tokenizer, Decoder(loaded.tokenizer)
        num_tokens, limit = num_usable(loaded), loaded.context_limit
        target = wrap(loaded.model, precision, num_tokens, limit)
        self.target = target
        small = first_layers(loaded.model, DRAFT_LAYERS)
        draft = DraftModelProposer(wrap(small, precision, num_tokens, limit), (), num_tokens)
        packed = wrap(load(DEFAULT_TARGET, "int4", lambda *_: None).model, "int4", num_tokens, limit)
        quantized = DraftModelProposer(packed, (), num_tokens)
        small.generation_config.num_assistant_tokens = GAMMA
        small.generation_config.num_assistant_tokens_schedule = "constant"
        small.generation_config.assistant_confidence_threshold = 0.0
        lookup = {"prompt_lookup_num_tokens": GAMMA, "max_matching_ngram_size": NGRAM_SIZES[1]}
        self.arms: dict[str, Arm] = {
            "plain": engine_arm(target, Proposer(), 0, decoder),
            "generate": generate_arm(loaded.model),
            "ngram": engine_arm(target, NgramProposer(*NGRAM_SIZES), GAMMA, decoder),
            "prompt_lookup": generate_arm(loaded.model, **lookup),
            "draft": engine_arm(target, draft, GAMMA, decoder),
            "assisted": generate_arm(loaded.model, assistant_model=small),
            "quantized": engine_arm(target, quantized, QUANTIZED_GAMMA, decoder),
        }
        self.num_threads = choose_threads(self._step)
        self._pass_cost = self._measure_widths()

    def _step(self) -> None:
        self.target.reset()
        self.target.extend([100])
        self.target.extend([100] * 4)

    def _measure_widths(self) -> dict[int, float]:
        """Median ms of a target pass over 1 … gamma + 1 tokens behind 200, interleaved."""
        widths = (1, QUANTIZED_GAMMA + 1, GAMMA + 1)
        times: dict[int, list[float]] = {width: [] for width in widths}
        self.target.reset()
        self.target.extend([100] * 200)
        for _ in range(12):
            for width in widths:
                times[width].append(_milliseconds(lambda width=width: self.target.extend([100] * width)))
                self.target.rollback(200)
        return {width: statistics.median(values[2:]) for width, values in times.items()}

    def width_cost(self, width: int) -> float:
        """Cost of a pass over `width` tokens in passes over one."""
        return self._pass_cost[width] / self._pass_cost[1]

    def prompt(self, preset_id: str) -> list[int]:
        """A preset as the target's token ids."""
        preset = next(item for item in PRESETS if item.id == preset_id)
        messages = [{"role": "user", "content": preset.prompt}]
        return self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)

    def cycles(self, presets: list[str], names: list[str], num_tokens: int, repeats: int) -> Iterator[dict]:
        """Yield one {arm: Measured, "task": id} per cycle; the first of each arm and task is warm-up."""
        for preset in presets:
            ids = self.prompt(preset)
            for repeat in range(repeats + 1):
                self._report(f"{preset}: {'warm-up' if repeat == 0 else f'cycle {repeat} of {repeats}'}")
                measured = {name: self.arms[name](ids, num_tokens) for name in names}
                if repeat:
                    yield measured | {"task": preset}


def _milliseconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return (perf_counter() - start) * 1000


def run_bench(quick: bool = True, report: Report = print) -> dict:
    """Run the benchmark and return its figures: ratios with median, min and max, and what they ran on."""
    bench = Bench(report=report)
    tokens, repeats = (48, 2) if quick else (96, 5)
    presets = ["edit", "chat"] if quick else [item.id for item in PRESETS]
    cycles = list(bench.cycles(presets, list(bench.arms), tokens, repeats))
    figures = {name: asdict(value) for name, value in _figures(bench, cycles).items()}
    per_task = {
        preset: {name: _speed([cycle for cycle in cycles if cycle["task"] == preset], name) for name in bench.arms}
        for preset in presets
    }
    settings = {"gamma": GAMMA, "quantized_gamma": QUANTIZED_GAMMA, "tokens": tokens, "cycles_per_task": repeats}
    where = environment() | {"threads": bench.num_threads, "precision": "bfloat16", "torch": torch.__version__}
    return figures | {"tokens_per_second": per_task, "settings": settings, "environment": where}


def _speed(cycles: list[dict], name: str) -> float:
    return round(statistics.median(cycle[name].tokens_per_second for cycle in cycles), 1)


def _figures(bench: Bench, cycles: list[dict]) -> dict[str, Ratio]:
    def speeds(cycle: dict, name: str) -> float:
        return cycle[name].tokens_per_second

    def against(first: str, second: str, task: str = "") -> Ratio:
        chosen = [cycle for cycle in cycles if task in ("", cycle["task"])]
        return ratio([(speeds(cycle, first), speeds(cycle, second)) for cycle in chosen])

    ours = ("plain", "ngram", "draft", "quantized")
    return {
        "plain_vs_generate": against("plain", "generate"),
        "draft_vs_assisted_generate": against("draft", "assisted"),
        "ngram_vs_prompt_lookup": against("ngram", "prompt_lookup"),
        "ngram_vs_plain_on_edit": against("ngram", "plain", "edit"),
        "quantized_vs_plain_on_chat": against("quantized", "plain", "chat"),
        "overhead_share": ratio(
            [(c[n].metrics.other_ms, c[n].metrics.decode_ms) for c in cycles for n in ("ngram", "draft", "quantized")]
        ),
        "measured_vs_predicted": ratio([_prediction(bench, cycle) for cycle in cycles]),
        "best_vs_generate": ratio([(max(speeds(c, n) for n in ours), speeds(c, "generate")) for c in cycles]),
    }


def _prediction(bench: Bench, cycle: dict) -> tuple[float, float]:
    """Measured and predicted speedup of the quantized copy, from its alpha, its c and the width cost."""
    plain, fast = cycle["plain"], cycle["quantized"]
    metrics = fast.metrics
    step_ms = plain.seconds * 1000 / plain.num_tokens
    c = metrics.draft_ms / metrics.num_drafted / step_ms
    predicted = predicted_speedup(metrics.alpha or 0.0, QUANTIZED_GAMMA, c, bench.width_cost(QUANTIZED_GAMMA + 1))
    return fast.tokens_per_second / plain.tokens_per_second, predicted


def table(figures: dict) -> str:
    """The figures as lines of text."""
    lines = [f"{'measure':<30} {'median':>8} {'min':>8} {'max':>8}"]
    for name, value in figures.items():
        if isinstance(value, dict) and "median" in value:
            lines.append(f"{name:<30} {value['median']:>8.3f} {value['min']:>8.3f} {value['max']:>8.3f}")
    lines.append("")
    lines.append("tokens/s (median): " + ", ".join(next(iter(figures["tokens_per_second"].values()))))
    for task, speeds in figures["tokens_per_second"].items():
        lines.append(f"  {task:<12} " + "  ".join(f"{speed:>6.1f}" for speed in speeds.values()))
    where = figures["environment"]
    lines.append(f"on {where['device_name']}, {where['threads']} threads, torch {where['torch']}, {where['precision']}")
    return "\n".join(lines)
