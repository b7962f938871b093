"""What a proposer is made of, in a sentence: parameters, memory, training. For the page and the command line.

Read from files and the manifest alone: nothing is loaded and torch is not imported.
"""

import json
from pathlib import Path

from playground.registry import draft_options, manifest
from playground.registry.bundled import trained_folder
from playground.registry.checkpoint import count_params
from playground.registry.precision import memory_bytes

NOTHING = "No parameters of its own."
FACTS = {
    "none": "",
    "self": "The target's own weights, held once; a second cache.",
    "lookahead": "No parameters of its own; its window widens every target pass.",
}


def proposer_facts(proposer: str, target: str, draft: str = "", precision: str = "auto") -> str:
    """Parameters and memory of a proposer for this target, or why it cannot draft yet.

    Args:
        proposer, target, draft: as in RunSettings.
        precision: of a quantized copy.
    """
    if proposer in ("medusa", "eagle", "early-exit"):
        return head_facts(trained_folder(target, proposer), proposer, target)
    if proposer == "draft":
        known = {option.id: option for option in draft_options(target)}
        chosen = known.get(draft or next(iter(known), ""))
        return "" if chosen is None else (chosen.detail if chosen.available else chosen.reason)
    if proposer == "quantized":
        return _copy_facts(target, precision)
    return FACTS.get(proposer, NOTHING)


def head_facts(folder: Path, recipe: str, target: str) -> str:
    """Parameters, memory and text of a trained head; for early exit the depths it has adapters for."""
    config = _read(folder / "config.json")
    if not config:
        return f"Not trained for {target} yet: python -m playground train {recipe} --target {target}"
    weights = folder / "model.safetensors"
    count, size = count_params(weights, folder.name), weights.stat().st_size
    words = f"{count / 1e6:.1f}M parameters, {size / 1e6:.0f} MB"
    if "exit_layers" in config:
        words += f", adapters after {', '.join(map(str, config['exit_layers']))} of the target's layers"
    making = _read(folder / "figures.json").get("making", {})
    if making:
        words += f", trained {making['minutes']:.0f} minutes on {making['corpus_tokens'] / 1e6:.2f}M tokens"
    return f"{words}."


def _copy_facts(target: str, precision: str) -> str:
    entry = manifest.find(target)
    if entry is None:
        return ""
    names = ("int8", "int4") if precision == "auto" else (precision,)
    sizes = [f"{memory_bytes(entry.num_params, name, entry.num_kept, 'cpu') / 1e6:.0f} MB in {name}" for name in names]
    return f"{entry.num_params / 1e6:.0f}M parameters once more: {' or '.join(sizes)}."


def _read(path: Path) -> dict:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
