"""A server's speculative counters, read before and after: the same rates as our metrics, under our names.

Prometheus text in, plain numbers out; fetches nothing. Names: vllm:spec_decode_num_drafts, …_num_draft_tokens,
…_num_accepted_tokens, …_num_accepted_tokens_per_pos{position}, which appear with `_total` behind them (vLLM 0.33,
vllm/v1/spec_decode/metrics.py); the same under llamacpp: (llama.cpp pull request 26389); sglang:spec_verify_calls_total
beside sglang:generation_tokens_total (SGLang 0.5.23, srt/observability/metrics_collector.py). A server counts all its
traffic, so others' requests in between are in the difference.
"""

import re
from dataclasses import dataclass

SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+(\S+)(?:\s+-?\d+)?')
LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
MAX_POSITIONS = 256
GENERATED = {
    "vllm": "vllm:generation_tokens",
    "llama.cpp": "llamacpp:tokens_predicted",
    "sglang": "sglang:generation_tokens",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line of Prometheus text; `name` is without `_total`."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server has counted since it started. None: it does not count that."""

    engine: str
    num_rounds: float | None = None
    num_drafted: float | None = None
    num_accepted: float | None = None
    accepted_by_position: tuple[float, ...] = ()
    num_generated: float | None = None


@dataclass(frozen=True, slots=True)
class ServerRates:
    """The difference of two readings, with our definitions; a rate with nothing to divide by is None.

    `alpha` is known only while every draft had the full length: then each round that did not accept all of it
    refused exactly one token. `acceptance_by_position` is conditional on the position before.
    """

    engine: str
    num_rounds: int
    num_drafted: int
    num_accepted: int
    num_generated: int
    acceptance_length: float | None
    draft_efficiency: float | None
    alpha: float | None
    acceptance_by_position: tuple[float | None, ...]


def parse(text: str) -> list[Sample]:
    """Read Prometheus text; lines that are none are left out, as are values that are no finite number."""
    found = []
    for line in text.splitlines():
        match = None if line.startswith("#") else SAMPLE.fullmatch(line.strip())
        if match is None:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if value - value == 0:  # neither infinite nor NaN
            found.append(Sample(match[1].removesuffix("_total"), dict(LABEL.findall(match[2] or "")), value))
    return found


def counters(text: str) -> Counters | None:
    """Return a server's counters, summed over its engines and models; None when it has none of those known."""
    samples = parse(text)
    for engine, prefix in (("vllm", "vllm:"), ("llama.cpp", "llamacpp:")):
        if any(item.name.startswith(prefix) for item in samples):
            return _vllm_like(engine, f"{prefix}spec_decode_num_", samples)
    if any(item.name.startswith("sglang:") for item in samples):
        rounds = _sum(samples, "sglang:spec_verify_calls")
        return Counters("sglang", num_rounds=rounds, num_generated=_sum(samples, GENERATED["sglang"]))
    return None


def _vllm_like(engine: str, prefix: str, samples: list[Sample]) -> Counters:
    positions: dict[int, float] = {}
    for item in samples:
        place = item.labels.get("position", "")
        if item.name == f"{prefix}accepted_tokens_per_pos" and place.isdecimal() and int(place) < MAX_POSITIONS:
            positions[int(place)] = positions.get(int(place), 0.0) + item.value
    return Counters(
        engine,
        _sum(samples, f"{prefix}drafts"),
        _sum(samples, f"{prefix}draft_tokens"),
        _sum(samples, f"{prefix}accepted_tokens"),
        tuple(positions.get(place, 0.0) for place in range(max(positions, default=-1) + 1)),
        _sum(samples, GENERATED[engine]),
    )


def _sum(samples: list[Sample], name: str) -> float | None:
    values = [item.value for item in samples if item.name == name]
    return sum(values) if values else None


def difference(before: Counters, after: Counters) -> ServerRates:
    """Return the rates of what happened between two readings.

    Raises:
        ValueError: the server was restarted in between, so that its counters went back.
    """

    def grown(name: str) -> int | None:
        first, last = getattr(before, name) or 0.0, getattr(after, name)
        if last is not None and last < first:
            raise ValueError("The server's counters went back: it was restarted while it was watched.")
        return None if last is None else round(last - first)

    rounds, drafted, accepted = grown("num_rounds"), grown("num_drafted"), grown("num_accepted")
    generated = grown("num_generated")
    kept = _by_position(before.accepted_by_position, after.accepted_by_position)
    length = None
    if rounds and accepted is not None:
        length = 1 + accepted / rounds
    elif rounds and generated is not None:  # SGLang counts rounds and tokens, not what was drafted
        length = generated / rounds
    return ServerRates(
        after.engine,
        rounds or 0,
        drafted or 0,
        accepted or 0,
        generated or 0,
        length,
        accepted / drafted if drafted and accepted is not None else None,
        _alpha(rounds or 0, drafted or 0, accepted or 0, kept),
        _conditional(rounds or 0, kept),
    )


def _by_position(before: tuple[float, ...], after: tuple[float, ...]) -> list[int]:
    padded = [*before, *[0.0] * len(after)]
    return [round(last - first) for first, last in zip(padded, after, strict=False)]


def _alpha(rounds: int, drafted: int, accepted: int, kept: list[int]) -> float | None:
    """Accepted / tested where tested is known: all drafts as long as the list of positions."""
    if not rounds or not kept or drafted != rounds * len(kept) or sum(kept) != accepted:
        return None
    return accepted / (accepted + rounds - kept[-1]) if accepted + rounds > kept[-1] else None


def _conditional(rounds: int, kept: list[int]) -> tuple[float | None, ...]:
    reached = [rounds, *kept]
    return tuple(now / before if before else None for before, now in zip(reached, kept, strict=False))
