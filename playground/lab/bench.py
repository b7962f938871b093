"""The benchmark: our engine against transformers' generate and llama.cpp, interleaved, as ratios with spread.

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
from playground.lab import long_context
from playground.lab.arms import Arm, engine_arm, first_layers, generate_arm, trained_arms
from playground.lab.llama_cpp import start_llama_cpp
from playground.lm import wrap
from playground.presets import PRESETS
from playground.proposers import DraftModelProposer, NgramProposer, Proposer
from playground.registry import environment, load
from playground.registry.compat import num_usable
from playground.registry.default_target import gguf_path
from playground.text import Decoder
from playground.theory import predicted_speedup
from playground.threads import choose_threads

GAMMA = 5
QUANTIZED_GAMMA = 4
NGRAM_SIZES = (2, 4)
DRAFT_LAYERS = 4
SPECULATIVE = ("ngram", "draft", "quantized", "eagle", "medusa")
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
        report(f"Loading {DEFAULT_TARGET} in {precision} and int4")
        start = perf_counter()
        loaded = load(DEFAULT_TARGET, precision, lambda *_: None)
        self.tokenizer, decoder = loaded.tokenizer, Decoder(loaded.tokenizer)
        num_tokens, limit = num_usable(loaded), loaded.context_limit
        target = wrap(loaded.model, precision, num_tokens, limit)
        self.target, loaded_s = target, perf_counter() - start
        small = first_layers(loaded.model, DRAFT_LAYERS)
        draft = DraftModelProposer(wrap(small, precision, num_tokens, limit), (), num_tokens)
        start = perf_counter()
        packed = wrap(load(DEFAULT_TARGET, "int4", lambda *_: None).model, "int4", num_tokens, limit)
        self.load_s = {precision: round(loaded_s, 2), "int4": round(perf_counter() - start, 2)}
        self.packed = packed
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
            "int4": engine_arm(packed, Proposer(), 0, decoder),
            "int4_ngram": engine_arm(packed, NgramProposer(*NGRAM_SIZES), GAMMA, decoder),
        }
        self.arms |= trained_arms(target, loaded, decoder)
        self.num_threads = choose_threads(self._step)
        self.llama = start_llama_cpp(gguf_path(), self.num_threads, GAMMA, NGRAM_SIZES[1], report)
        if self.llama:
            self.arms |= {"llama_cpp": self.llama.arm("plain"), "llama_cpp_lookup": self.llama.arm("lookup")}
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

    def close(self) -> None:
        """End what the bench started beside itself."""
        if self.llama:
            self.llama.close()

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
    tokens, repeats = (48, 2) if quick else (64, 3)
    presets = ["edit", "chat"] if quick else [item.id for item in PRESETS]
    cycles = list(bench.cycles(presets, list(bench.arms), tokens, repeats))
    figures = {name: asdict(value) for name, value in _figures(bench, cycles).items()}
    per_task = {
        preset: {name: _speed([cycle for cycle in cycles if cycle["task"] == preset], name) for name in bench.arms}
        for preset in presets
    }
    settings = {"gamma": GAMMA, "quantized_gamma": QUANTIZED_GAMMA, "tokens": tokens, "cycles_per_task": repeats}
    more = {"load_s": bench.load_s, "ms_per_round": {name: _split(cycles, name) for name in SPECULATIVE}}
    if not quick:
        lookup = NgramProposer(*NGRAM_SIZES)
        more["long_context"] = long_context.measure(bench.target, GAMMA, lookup, report)
        more["long_context_int4"] = long_context.measure(bench.packed, GAMMA, lookup, report)
    bench.close()
    where = environment() | {"threads": bench.num_threads, "precision": "bfloat16", "torch": torch.__version__}
    return figures | {"tokens_per_second": per_task} | more | {"settings": settings, "environment": where}


def _split(cycles: list[dict], name: str) -> dict[str, float]:
    """Where the time of a round goes: medians of draft, verify and other, in ms."""
    runs = [cycle[name].metrics for cycle in cycles]
    parts = {"draft": "draft_ms", "verify": "verify_ms", "other": "other_ms"}
    return {
        part: round(statistics.median(getattr(run, total) / run.num_rounds for run in runs), 2)
        for part, total in parts.items()
    }


def _speed(cycles: list[dict], name: str) -> float:
    return round(statistics.median(cycle[name].tokens_per_second for cycle in cycles), 1)


def _figures(bench: Bench, cycles: list[dict]) -> dict[str, Ratio]:
    def speeds(cycle: dict, name: str) -> float:
        return cycle[name].tokens_per_second

    def against(first: str, second: str, task: str = "") -> Ratio:
        chosen = [cycle for cycle in cycles if task in ("", cycle["task"])]
        return ratio([(speeds(cycle, first), speeds(cycle, second)) for cycle in chosen])

    lossless = ("plain", *SPECULATIVE)
    ours = (*lossless, "int4", "int4_ngram")

    def best(names: tuple[str, ...], second: str) -> Ratio:
        """Against the arm that is fastest on each task by its median, not by the luck of a cycle."""
        tasks = {cycle["task"] for cycle in cycles}
        first = {task: max(names, key=lambda n: _speed([c for c in cycles if c["task"] == task], n)) for task in tasks}
        return ratio([(speeds(c, first[c["task"]]), speeds(c, second)) for c in cycles])

    figures = {
        "plain_vs_generate": against("plain", "generate"),
        "draft_vs_assisted_generate": against("draft", "assisted"),
        "ngram_vs_prompt_lookup": against("ngram", "prompt_lookup"),
        "ngram_vs_plain_on_edit": against("ngram", "plain", "edit"),
        "quantized_vs_plain_on_chat": against("quantized", "plain", "chat"),
        "overhead_share": ratio([(c[n].metrics.other_ms, c[n].metrics.decode_ms) for c in cycles for n in SPECULATIVE]),
        "measured_vs_predicted": ratio([_prediction(bench, cycle) for cycle in cycles]),
        "best_lossless_vs_plain": best(lossless, "plain"),
        "best_vs_generate": best(ours, "generate"),
    }
    if bench.llama:
        figures["int4_vs_llama_cpp"] = against("int4", "llama_cpp")
        figures["int4_ngram_vs_llama_cpp_lookup"] = against("int4_ngram", "llama_cpp_lookup")
        figures["best_vs_llama_cpp"] = best(ours, "llama_cpp")
    return figures


def _prediction(bench: Bench, cycle: dict) -> tuple[float, float]:
    """Measured and predicted speedup of the quantized copy, from its alpha, its c and the width cost."""
    plain, fast = cycle["plain"], cycle["quantized"]
    metrics = fast.metrics
    step_ms = plain.seconds * 1000 / plain.num_tokens
    c = metrics.draft_ms / metrics.num_drafted / step_ms
    predicted = predicted_speedup(metrics.alpha or 0.0, QUANTIZED_GAMMA, c, bench.width_cost(QUANTIZED_GAMMA + 1))
    return fast.tokens_per_second / plain.tokens_per_second, predicted
