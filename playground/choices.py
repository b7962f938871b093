"""All that can be chosen on this machine, as plain values for the page and the command line."""

from dataclasses import dataclass

from playground import registry
from playground.config import DEFAULT_TARGET, DEFAULTS, GAMMA_POLICIES, PROPOSER_OPTIONS, RANGES
from playground.facts import proposer_facts
from playground.registry import hub, precision
from playground.registry.manifest import Option


@dataclass(frozen=True, slots=True)
class Options:
    """Lists to choose from. `notice` says in a sentence what is out of reach, or "" ."""

    targets: list[Option]
    drafts: list[Option]
    precisions: list[Option]
    quantized: list[Option]
    environment: dict
    notice: str
    suggested_target: str


def options() -> Options:
    """Look at device, manifest and network and list what can be chosen, with reasons for the rest."""
    where = registry.device()
    precisions = precision.precision_options(where)
    targets = registry.target_options()
    fastest = precision.fastest_quantized(where)
    auto = Option("auto", f"fastest here ({fastest})", True)
    small = [option for option in precisions if option.id in ("fp8", "int8", "int4", "nf4", "fp4")]
    away = [option for option in targets if not option.available and "out of reach" in option.reason]
    notice = "The Hugging Face Hub is out of reach here: only models on this machine can be chosen." if away else ""
    if hub.offline():
        notice = "Offline mode is on: only models on this machine can be chosen."
    suggested = registry.suggest_target()
    drafts = registry.draft_options(suggested) or targets
    return Options(targets, drafts, precisions, [auto, *small], registry.environment(), notice, suggested)


def proposer_options(target: str = DEFAULT_TARGET) -> list[dict]:
    """List the proposers: the settings that matter to each, with defaults and ranges, and what they are made of."""
    return [
        {"id": name, "options": [_described(option) for option in options], "facts": proposer_facts(name, target)}
        for name, options in PROPOSER_OPTIONS.items()
    ]


def gamma_policies() -> list[dict]:
    """List the policies for gamma in the same way."""
    own = {"confidence": ("gamma", "confidence_threshold")}
    return [{"id": name, "options": [_described(o) for o in own.get(name, ("gamma",))]} for name in GAMMA_POLICIES]


def _described(name: str) -> dict:
    described = {"name": name, "default": DEFAULTS[name]}
    if name in RANGES:
        described |= {"low": RANGES[name].low, "high": RANGES[name].high, "step": RANGES[name].step}
    return described
