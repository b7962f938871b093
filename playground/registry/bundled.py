"""Drafters made by `train`: a folder models/<target>-<recipe>/ for each target and recipe.

Finds them and says how to make one that is missing. A draft model's folder holds only what differs
from its target; `assembled` joins the two in the cache, once. Knows nothing of how heads work.
"""

import json
import re
from pathlib import Path

from playground.registry.default_target import cache_root
from playground.registry.download import Progress
from playground.registry.errors import ModelError
from playground.registry.manifest import MANIFEST_PATH

CONFIG_NAME = "config.json"
DELTA_NAME, WEIGHTS_NAME = "delta.safetensors", "model.safetensors"


def slug_of(target: str) -> str:
    """A model's name as part of a folder's."""
    return re.sub(r"[^a-z0-9.]+", "-", target.lower()).strip("-")


def trained_folder(target: str, recipe: str) -> Path:
    """Where `train RECIPE --target TARGET` puts its weights."""
    return MANIFEST_PATH.parent / f"{slug_of(target)}-{recipe}"


def trained(target: str, recipe: str) -> Path:
    """The folder of a trained drafter. Raises ModelError with the command that makes one when it is missing."""
    folder = trained_folder(target, recipe)
    if not (folder / CONFIG_NAME).is_file():
        what = f"No {recipe} drafter has been trained for {target}."
        raise ModelError(what, f"Train one: python -m playground train {recipe} --target {target}")
    return folder


def is_delta(folder: Path) -> bool:
    """Whether a folder is a draft model without what it shares with its target."""
    return (folder / DELTA_NAME).is_file()


def assembled(folder: Path, progress: Progress) -> Path:
    """Join a draft model with its target to a checkpoint in the cache and return that folder.

    Raises:
        ModelError: the target cannot be loaded, or does not fit.
    """
    from playground import registry
    from playground.heads.draft import assemble, assembled_folder

    root = cache_root() / "drafts"
    known = assembled_folder(folder, root)
    if (known / WEIGHTS_NAME).is_file():
        return known
    target = json.loads((folder / CONFIG_NAME).read_text(encoding="utf-8"))["target"]
    loaded = registry.load(target, "bfloat16", progress)
    progress("loading", f"Joining the draft model with {target}", None)
    try:
        return assemble(folder, loaded.model, loaded.tokenizer, root)
    except ValueError as error:
        raise ModelError(str(error), f"Train it again: python -m playground train draft --target {target}") from error
