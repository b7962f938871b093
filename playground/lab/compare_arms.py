"""What `compare` compares: arms, each a name and the settings that make it, and the prompts by task.

Plain values only: needs no torch and no models.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from playground.config import DEFAULT_TREE, PROPOSERS, RANGES

TASKS = ("chat", "edit", "code", "summarise", "translate", "arithmetic")  # of the held-out prompts, what `--all` takes
ALL_TASKS = (*TASKS, "extraction", "story")
OWN_TASK = "own prompts"
MAX_FILE_BYTES = 5_000_000


@dataclass(frozen=True)
class Arm:
    """A name and the settings of a run it changes; what is not named stays as usual."""

    name: str
    changes: dict = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for the same settings."""
        return json.dumps(self.changes, sort_keys=True)


PLAIN = Arm("plain decoding", {"proposer": "none"})
STANDING = (
    Arm("draft model, γ 2", {"proposer": "draft", "gamma": 2}),
    Arm("EAGLE, chain γ 4", {"proposer": "eagle", "gamma": 4}),
    Arm("EAGLE, tree of 4", {"proposer": "eagle", "gamma": 4, "tree_nodes": 4}),
    Arm("Medusa, chain γ 3", {"proposer": "medusa", "gamma": 3}),
    Arm("Medusa, tree of 4", {"proposer": "medusa", "gamma": 4, "tree_nodes": 4}),
    Arm("early exit, 7 layers, γ 1", {"proposer": "early-exit", "gamma": 1, "exit_layers": 7}),
    Arm("early exit without adapter", {"proposer": "early-exit", "gamma": 1, "exit_layers": 7, "adapter": False}),
    Arm("quantized copy, γ 4", {"proposer": "quantized", "gamma": 4}),
    Arm("n-gram, γ 5", {"proposer": "ngram", "gamma": 5}),
    Arm("suffix decoding, γ 8", {"proposer": "suffix", "gamma": 8}),
    Arm("lookahead", {"proposer": "lookahead", "gamma": 2}),
    Arm("oracle, γ 5 (ceiling)", {"proposer": "oracle", "gamma": 5}),
    Arm("random, γ 5 (floor)", {"proposer": "random", "gamma": 5}),
)


def arms_of(proposers: Iterable[str], gammas: Iterable[int]) -> list[Arm]:
    """Every proposer with every gamma; "eagle:tree" and "medusa:tree" draft trees.

    Raises:
        ValueError: a name that is no proposer, or a gamma out of range.
    """
    found = []
    for chosen in proposers:
        name, _, tree = chosen.partition(":")
        if name not in PROPOSERS or tree not in ("", "tree") or name == "none":
            raise ValueError(f"{chosen} is no proposer to compare: choose of {', '.join(PROPOSERS[1:])}, eagle:tree.")
        for gamma in gammas:
            RANGES["gamma"].check("gamma", gamma)
            changes = {"proposer": name, "gamma": int(gamma)} | ({"tree_nodes": DEFAULT_TREE} if tree else {})
            found.append(Arm(f"{name}{' tree' if tree else ''}, γ {gamma}", changes))
    return found


def held_out(tasks: Iterable[str], per_task: int) -> dict[str, list[str]]:
    """Prompts that never entered training, by task. Raises ValueError for a task there is not."""
    from playground.training.held_out import HELD_OUT

    unknown = [task for task in tasks if task not in HELD_OUT]
    if unknown:
        raise ValueError(f"There is no task {unknown[0]}: choose of {', '.join(HELD_OUT)}.")
    return {task: list(HELD_OUT[task][:per_task]) for task in tasks}


def read_prompts(path: Path) -> dict[str, list[str]]:
    """Prompts of a person's file: .jsonl with `prompt`, or Spec-Bench's `turns` and `category`; else plain text.

    In plain text prompts are parted by blank lines; without any, each line is one.

    Raises:
        ValueError: a file that cannot be read, is too large or holds no prompt.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"{path} is larger than {MAX_FILE_BYTES / 1e6:.0f} MB.")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as UTF-8 text ({type(error).__name__}).") from error
    found = _json_lines(text, path) if path.suffix in (".jsonl", ".json") else {OWN_TASK: _plain(text)}
    if not any(found.values()):
        raise ValueError(f"{path} holds no prompt.")
    return found


def _plain(text: str) -> list[str]:
    parts = text.split("\n\n") if "\n\n" in text.strip() else text.splitlines()
    return [part.strip() for part in parts if part.strip()]


def _json_lines(text: str, path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            prompt = record["prompt"] if "prompt" in record else record["turns"][0]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: expected an object with `prompt` or `turns`.") from error
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError(f"{path}, line {number}: the prompt is empty.")
        task = record.get("category") or record.get("task") or OWN_TASK
        found.setdefault(str(task), []).append(prompt)
    return found
