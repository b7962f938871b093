"""Models of the Hugging Face Hub: is it in reach, what is cached, and fetching what is not.

Nothing is asked of the network at import, nor when HF_HUB_OFFLINE is set. A model is judged by its
config.json, a few kB, before its weights are fetched; only safetensors and tokenizer files ever
are. What is cached already is used as it is, without a question to the network.
"""

import os
import shutil
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from playground.registry import checkpoint
from playground.registry.download import Progress, disk_full, network_error, run_download
from playground.registry.errors import ModelError

PROBE_TIMEOUT_S = 3.0
PROBE_LASTS_S = 120.0
CALL_TIMEOUT_S = 15.0
WANTED_SUFFIXES = (".safetensors", ".json", ".jinja", ".model", ".txt")
UNWANTED_PREFIX = "consolidated"  # the same weights once more, in another layout
FETCH = (
    "import sys; from huggingface_hub import snapshot_download; "
    "snapshot_download(sys.argv[1], allow_patterns=sys.argv[2:])"
)
OFFLINE_HINT = "Use the bundled model or a local folder, or connect this machine and try again."


def offline() -> bool:
    """Say whether the person asked for no network calls (HF_HUB_OFFLINE)."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")


def hub_reachable() -> bool:
    """Say whether the Hub answers; asked once per two minutes at most, with a short timeout."""
    return not offline() and _probe(int(time.monotonic() // PROBE_LASTS_S))


@lru_cache(maxsize=1)
def _probe(period: int) -> bool:
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=PROBE_TIMEOUT_S)
    except Exception:  # no route, no name, a proxy that refuses: all the same answer
        return False
    return True


def cached_folder(repo: str) -> Path | None:
    """Return the cached snapshot of a repository if it is complete, without any network call."""
    from huggingface_hub import try_to_load_from_cache

    try:
        config = try_to_load_from_cache(repo, "config.json")
        if not isinstance(config, str):
            return None
        checkpoint.weight_files(Path(config).parent, repo)
    except (ModelError, ValueError):
        return None
    return Path(config).parent


def fetch(repo: str, progress: Progress) -> Path:
    """Return the local folder of a Hub repository, fetching what is missing.

    Raises:
        ModelError: unknown or gated repository, Hub out of reach, wrong kind of model or weights,
            full disk. All but the last two before any weights are fetched.
    """
    cached = cached_folder(repo)
    if cached:
        return cached
    if not hub_reachable():
        why = "HF_HUB_OFFLINE is set" if offline() else "the Hugging Face Hub is out of reach"
        raise ModelError(f"{repo} is not on this machine and {why}.", OFFLINE_HINT)
    progress("downloading", f"Looking up {repo}", None)
    listing = _ask(repo)
    sizes = _wanted_files(repo, {item.rfilename: item.size or 0 for item in listing.siblings or []})
    num_bytes = sum(sizes.values())
    folder = _repo_folder(repo)
    _check_disk(repo, folder, num_bytes)
    command = [sys.executable, "-c", FETCH, repo, *sizes]
    code, log = run_download(command, folder, num_bytes, repo, progress)
    if code:
        raise _fetch_error(repo, log)
    return cached_folder(repo) or _config_of(repo).parent


def _ask(repo: str) -> Any:
    """Return the Hub's listing of a repository after its config.json passed the checks."""
    from huggingface_hub import HfApi, errors

    try:
        listing = HfApi().model_info(repo, files_metadata=True, timeout=CALL_TIMEOUT_S)
        if any(item.rfilename == "config.json" for item in listing.siblings or []):
            checkpoint.read_config(_config_of(repo).parent, repo)
    except errors.GatedRepoError as error:
        hint = "Accept its licence on its Hub page, then log in with: hf auth login (or set HF_TOKEN), and try again."
        raise ModelError(f"{repo} is gated: this machine has no token with access to it.", hint) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        hint = "Check the spelling (owner/name); a private model needs: hf auth login."
        raise ModelError(f"There is no model named {repo} on the Hugging Face Hub.", hint) from error
    except (errors.HfHubHTTPError, OSError) as error:
        raise ModelError(f"The Hugging Face Hub did not answer for {repo}: {error}"[:250], OFFLINE_HINT) from error
    except Exception as error:
        if not network_error(f"{type(error).__name__} {error}") or isinstance(error, ModelError):
            raise
        raise ModelError(f"The connection to the Hub broke while looking up {repo}.", OFFLINE_HINT) from error
    return listing


def _config_of(repo: str) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(repo, "config.json"))


def _wanted_files(repo: str, sizes: dict[str, int]) -> dict[str, int]:
    """Return the files to fetch with their sizes, or refuse a repository without safetensors."""
    top = {name: size for name, size in sizes.items() if "/" not in name and not name.startswith(UNWANTED_PREFIX)}
    wanted = {name: size for name, size in top.items() if name.endswith(WANTED_SUFFIXES)}
    if "config.json" in top and any(name.endswith(".safetensors") for name in wanted):
        return wanted
    if any(name.endswith(".gguf") for name in top):
        hint = "Download one of its .gguf files and give its path, or choose the original model."
        raise ModelError(f"{repo} holds GGUF files, which are read from a local path only.", hint)
    if any(name.endswith(checkpoint.OTHER_WEIGHTS) for name in top):
        raise ModelError(
            f"{repo} has weights in an unsafe format only (such as .bin), and only safetensors are loaded.",
            "Choose a copy of it with safetensors.",
        )
    raise ModelError(
        f"{repo} is no model that transformers can load: config.json or weights are missing.", checkpoint.CHOOSE_TEXT
    )


def _repo_folder(repo: str) -> Path:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type="model")


def _check_disk(repo: str, folder: Path, num_bytes: int) -> None:
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(place).free
    if free < num_bytes:
        message = f"{repo} needs {num_bytes / 1e9:.1f} GB of disk, but {place} has {free / 1e9:.1f} GB left."
        raise ModelError(message, "Free some space, or set HF_HOME to a folder on another disk.")


def _fetch_error(repo: str, log: str) -> ModelError:
    if disk_full(log):
        hint = (
            "Free some space, or set HF_HOME to a folder on another disk, and try again: it goes on where it stopped."
        )
        return ModelError(f"The disk is full: {repo} could not be downloaded.", hint)
    if network_error(log):
        return ModelError(f"The connection broke while downloading {repo}.", "Try again: it goes on where it stopped.")
    reason = (log.strip().splitlines() or ["no reason given"])[-1][:200]
    return ModelError(f"{repo} could not be downloaded: {reason}", "Try again, or choose another model.")


def has_token() -> bool:
    """Say whether this machine has a Hub token at all (it may still lack access to one model)."""
    from huggingface_hub import get_token

    return bool(get_token())
