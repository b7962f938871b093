"""The models this product knows by name: models/manifest.json as frozen values.

Facts only (where a model lives, how large it is, under which licence, which drafts suit it), no
state of this machine. Cheap: needs neither torch nor transformers.
"""

import json
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

MANIFEST_PATH = Path(__file__).resolve().parents[2] / "models" / "manifest.json"


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a list to choose from. An unavailable one says why in `reason`."""

    id: str
    label: str
    available: bool
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model of the manifest.

    `num_params` counts shared weights once. `num_kept` of them (embeddings and output layer) stay
    at 16 bit when the rest is quantized. `drafts` are ids of smaller models with the same tokenizer,
    the one to try first in front. `vocab` is equal for models that share a tokenizer.
    """

    id: str
    label: str
    source: str  # "wheel" (bundled), "trained" (a draft made for the target `repo`, bundled) or "hub"
    repo: str
    num_params: int
    num_kept: int
    licence: str
    gated: bool
    vocab: str
    drafts: tuple[str, ...] = ()


@cache
def entries() -> dict[str, ModelEntry]:
    """Return the manifest, id → entry, in the order of the file.

    Raises:
        ValueError: the file is not a manifest.
    """
    records = json.loads(MANIFEST_PATH.read_text(encoding="utf-8"))["models"]
    names = {item.name for item in fields(ModelEntry)}
    unknown = {name for record in records for name in record} - names
    if unknown:
        raise ValueError(f"{MANIFEST_PATH.name} has unknown fields: {', '.join(sorted(unknown))}.")
    return {record["id"]: ModelEntry(**record | {"drafts": tuple(record.get("drafts", ()))}) for record in records}


def find(name: str) -> ModelEntry | None:
    """Return the entry with this id or, else, this Hub repository (any case), or None.

    The bundled model goes by its id only: its Hub name means the original 16-bit weights.
    """
    wanted = name.strip().lower()
    if wanted in entries():
        return entries()[wanted]
    on_hub = (entry for entry in entries().values() if entry.source == "hub")
    return next((entry for entry in on_hub if entry.repo.lower() == wanted), None)
