"""The README of a folder of trained weights: what it is, how it was made, how well it guesses."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

FIGURES_NAME = "figures.json"
WHAT = {
    "draft": "Draft model: a few of the target's own layers, distilled. Only the weights that differ are here; "
    "`playground.heads.assemble` joins them with the target's embedding to a checkpoint transformers loads.",
    "medusa": "Medusa heads: residual blocks over the target's hidden states, one per depth.",
    "eagle": "EAGLE head: one decoder layer on the target's features, started from its last layer.",
    "early-exit": "Early-exit adapters: from the hidden state after k layers to the target's output head.",
}
LICENCES = {"smollm2": "Apache-2.0, as SmolLM2, from whose weights and text it is made"}


@dataclass(frozen=True, slots=True)
class Making:
    """How a drafter was made."""

    recipe: str
    target: str
    command: str
    corpus_tokens: int
    seen_tokens: int
    minutes: float
    precision: str
    num_params: int
    layers: tuple[int, ...]
    num_draft_ids: int


def write_card(folder: Path, making: Making, figures: dict, ranks: dict) -> None:
    """Write README.md and figures.json (how it was made, held-out figures, rank accuracy on training text)."""
    record = {"making": asdict(making), "held_out": figures, "rank_accuracy": ranks}
    (folder / FIGURES_NAME).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_text(making, figures), encoding="utf-8")


def made_before(folder: Path) -> dict:
    """How the weights in a folder were made, as its figures say; empty where they do not."""
    try:
        return json.loads((folder / FIGURES_NAME).read_text(encoding="utf-8")).get("making") or {"minutes": 0.0}
    except (OSError, ValueError):
        return {"minutes": 0.0}


def _text(making: Making, figures: dict) -> str:
    licence = next((text for name, text in LICENCES.items() if making.target.startswith(name)), "that of its target")
    rows = {
        "Target": making.target,
        "Recipe": f"{making.recipe}; forward KL to the target's 64 likeliest tokens, AdamW, cosine",
        "Reads layers": ", ".join(map(str, making.layers)) or "none (token ids only)",
        "Trained parameters": f"{making.num_params:,}",
        "Draft vocabulary": f"{making.num_draft_ids:,} ids",
        "Text": f"{making.corpus_tokens:,} tokens, written by the target or read with it",
        "Tokens seen": f"{making.seen_tokens:,} (repeats included)",
        "Training time": f"{making.minutes:.0f} minutes, {making.precision}",
        "Date": f"{datetime.now(UTC):%Y-%m-%d}",
        "Licence": licence,
    }
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    parts = [f"# {making.target}: {making.recipe}\n\n{WHAT[making.recipe]}\n\n| | |\n|---|---|\n{table}\n"]
    parts.append(f"Made with\n\n```\n{making.command}\n```\n")
    if figures:
        parts.append(
            "## Held-out figures\n\nPrompts that never entered the training text (`playground/training/held_out.py`). "
            "Overlap by depth is the exact chance that the token is accepted, given those before; acceptance "
            "length is for a chain of four and counts the target's own token.\n"
        )
        parts += [_table(temperature, groups) for temperature, groups in figures.items()]
    return "\n".join(parts)


def _table(temperature: str, groups: dict) -> str:
    lines = [
        f"Temperature {temperature}\n",
        "| | task | overlap by depth | top-1 | acceptance length |",
        "|---|---|---|---|---|",
    ]
    for variant, tasks in groups.items():
        for task, values in sorted(tasks.items(), key=lambda item: item[0] != "all"):
            overlap = " ".join(f"{value:.3f}" for value in values["overlap"])
            cells = (variant, task, overlap, f"{values['top1'][0]:.3f}", f"{values['acceptance_length']:.2f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
