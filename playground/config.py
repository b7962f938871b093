"""What a run is asked to do: plain, frozen, validated settings.

The ranges here are the only copy: sliders, the command line and the API all read them.
Knows nothing of models, tensors or pages. A value outside its range raises ValueError with a
sentence that says what is allowed.
"""

import math
from dataclasses import asdict, dataclass, field, fields

PROPOSERS = (
    *("none", "ngram", "suffix", "draft", "quantized", "early-exit", "medusa", "eagle", "lookahead"),
    *("self", "oracle", "noisy-oracle", "random"),
)
# The settings that matter to one proposer only; gamma and its policy matter to all but "none".
PROPOSER_OPTIONS: dict[str, tuple[str, ...]] = {
    "none": (),
    "ngram": ("ngram_min", "ngram_max", "corpus"),
    "suffix": ("min_share", "corpus"),
    "draft": ("draft", "draft_precision", "greedy_draft"),
    "quantized": ("quantized_precision", "greedy_draft"),
    "early-exit": ("exit_layers", "adapter"),
    "medusa": ("tree_nodes", "typical_epsilon"),
    "eagle": ("tree_nodes", "tree_top_k"),
    "lookahead": ("window", "ngram_size", "num_guesses", "guess_tree"),
    "self": (),
    "oracle": (),
    "noisy-oracle": ("noise_alpha",),
    "random": (),
}
DEFAULT_TREE = 4  # nodes of a tree asked for without a size: five rows, which two CPU cores check almost for free
SWITCHES = ("chat_template", "greedy_draft", "adapter", "guess_tree")
GAMMA_POLICIES = ("constant", "heuristic", "confidence", "moving-average", "cost-model")
PRECISIONS = ("float32", "bfloat16", "float16", "fp8", "int8", "int4", "nf4", "fp4")
DEFAULT_TARGET = "smollm2-135m"
# int8 and int4 on a CPU keep a 16-bit copy of the rounded weights for wide passes in models up to this size.
WIDE_COPY_MAX_PARAMS = 500_000_000
MAX_STOP_STRINGS = 8
MAX_STOP_LENGTH = 200
MAX_CORPUS_LENGTH = 100_000  # characters; its index takes some 60 MB


@dataclass(frozen=True, slots=True)
class Range:
    """An allowed interval, both ends included, with the default and the slider's step."""

    low: float
    high: float
    default: float
    step: float
    whole: bool = True

    def check(self, name: str, value: object) -> float:
        """Return `value` as int (whole) or float, or raise ValueError naming the allowed range."""
        kind = "a whole number" if self.whole else "a number"
        allowed = f"{name} must be {kind} from {self.low:g} to {self.high:g}, not {value!r}."
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(allowed)
        if not self.low <= value <= self.high or (self.whole and value != int(value)):
            raise ValueError(allowed)
        return int(value) if self.whole else float(value)


RANGES: dict[str, Range] = {
    "gamma": Range(0, 16, 5, 1),  # 0 is plain decoding; the slider starts at 1
    "temperature": Range(0.0, 2.0, 0.0, 0.05, whole=False),
    "top_k": Range(0, 1000, 0, 1),  # 0 = off
    "top_p": Range(0.01, 1.0, 1.0, 0.01, whole=False),
    "seed": Range(0, 2**31 - 1, 0, 1),
    "max_new_tokens": Range(1, 2048, 160, 1),
    "ngram_min": Range(1, 8, 2, 1),
    "ngram_max": Range(1, 8, 4, 1),
    "exit_layers": Range(1, 64, 7, 1),
    "tree_nodes": Range(0, 32, 0, 1),  # 0 = a chain
    "tree_top_k": Range(1, 10, 2, 1),
    "window": Range(1, 16, 3, 1),
    "ngram_size": Range(3, 8, 3, 1),
    "num_guesses": Range(1, 16, 3, 1),
    "min_share": Range(0.0, 1.0, 0.1, 0.05, whole=False),
    "typical_epsilon": Range(0.0, 0.9, 0.0, 0.01, whole=False),
    "noise_alpha": Range(0.0, 1.0, 0.8, 0.05, whole=False),
    "confidence_threshold": Range(0.0, 1.0, 0.4, 0.05, whole=False),  # as in transformers
}


def _check_ranges(settings: object) -> None:
    for item in fields(settings):
        if item.name in RANGES:
            checked = RANGES[item.name].check(item.name, getattr(settings, item.name))
            object.__setattr__(settings, item.name, checked)


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How a token is drawn from logits, for target and draft alike. Temperature 0 is greedy.

    Order of the filters: temperature, then top-k, then top-p, as in transformers.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self):
        _check_ranges(self)


@dataclass(frozen=True, slots=True)
class SpecConfig:
    """What the engine needs for one run: draft length, budget, stops, sampling."""

    gamma: int = 5
    max_new_tokens: int = 160
    stop_strings: tuple[str, ...] = ()
    sampling: SamplingConfig = field(default_factory=SamplingConfig)

    def __post_init__(self):
        _check_ranges(self)
        _check_stop_strings(self.stop_strings)


def _check_stop_strings(stop_strings: tuple[str, ...]) -> None:
    if len(stop_strings) > MAX_STOP_STRINGS:
        raise ValueError(f"At most {MAX_STOP_STRINGS} stop strings are allowed, not {len(stop_strings)}.")
    for stop in stop_strings:
        if not isinstance(stop, str) or not 1 <= len(stop) <= MAX_STOP_LENGTH:
            raise ValueError(f"A stop string must have 1 to {MAX_STOP_LENGTH} characters.")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Everything a person chooses for one run: models, proposer, sampling, prompt.

    `target` and `draft` are ids of the manifest, local folders or Hub ids. PROPOSER_OPTIONS says which
    settings matter to which proposer. The `quantized_precision` "auto" is the fastest this device has;
    `corpus` is text to look up in besides prompt and output. With another policy than "constant", `gamma`
    is the most that is asked for; `confidence_threshold` matters to the policy "confidence" only.
    `typical_epsilon` above 0 makes the run lossy.
    """

    prompt: str
    system_prompt: str = ""
    chat_template: bool = True
    target: str = DEFAULT_TARGET
    target_precision: str = "bfloat16"
    proposer: str = "ngram"
    draft: str = ""
    draft_precision: str = "bfloat16"
    quantized_precision: str = "auto"
    gamma: int = 5
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    max_new_tokens: int = 160
    stop_strings: tuple[str, ...] = ()
    ngram_min: int = 2
    ngram_max: int = 4
    gamma_policy: str = "constant"
    confidence_threshold: float = RANGES["confidence_threshold"].default
    min_share: float = RANGES["min_share"].default
    noise_alpha: float = RANGES["noise_alpha"].default
    corpus: str = ""
    greedy_draft: bool = False
    exit_layers: int = RANGES["exit_layers"].default
    adapter: bool = True
    tree_nodes: int = RANGES["tree_nodes"].default
    tree_top_k: int = RANGES["tree_top_k"].default
    window: int = RANGES["window"].default
    ngram_size: int = RANGES["ngram_size"].default
    num_guesses: int = RANGES["num_guesses"].default
    guess_tree: bool = True
    typical_epsilon: float = RANGES["typical_epsilon"].default

    def __post_init__(self):
        _check_ranges(self)
        for name in ("prompt", "system_prompt", "target", "draft"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be text, not {getattr(self, name)!r}.")
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, not {getattr(self, name)!r}.")
        if isinstance(self.stop_strings, str) or not isinstance(self.stop_strings, tuple | list):
            raise ValueError(f"stop_strings must be a list of texts, not {self.stop_strings!r}.")
        object.__setattr__(self, "stop_strings", tuple(self.stop_strings))
        _check_stop_strings(self.stop_strings)
        _check_choice("proposer", self.proposer, PROPOSERS)
        _check_choice("target_precision", self.target_precision, PRECISIONS)
        _check_choice("draft_precision", self.draft_precision, PRECISIONS)
        _check_choice("quantized_precision", self.quantized_precision, ("auto", *PRECISIONS))
        _check_choice("gamma_policy", self.gamma_policy, GAMMA_POLICIES)
        if not isinstance(self.corpus, str) or len(self.corpus) > MAX_CORPUS_LENGTH:
            raise ValueError(f"The corpus must be text of at most {MAX_CORPUS_LENGTH:,} characters.")
        if self.ngram_min > self.ngram_max:
            raise ValueError("The smallest n-gram size must not exceed the largest.")
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise ValueError("The prompt is empty: type something for the target to continue.")

    @property
    def spec(self) -> SpecConfig:
        """The part of the settings the engine reads."""
        sampling = SamplingConfig(self.temperature, self.top_k, self.top_p, self.seed)
        return SpecConfig(self.gamma, self.max_new_tokens, self.stop_strings, sampling)

    @property
    def is_lossy(self) -> bool:
        """Whether the text may differ in distribution from the target's."""
        return self.typical_epsilon > 0 and "typical_epsilon" in PROPOSER_OPTIONS[self.proposer]

    def to_dict(self) -> dict:
        """Return plain values only, ready for JSON."""
        return asdict(self) | {"stop_strings": list(self.stop_strings)}


DEFAULTS = {item.name: item.default for item in fields(RunSettings) if item.name != "prompt"}


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
