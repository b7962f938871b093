"""Tokens/s of plain decoding measured on this machine, remembered from one start to the next.

A small JSON file in the cache folder, one figure for each model, precision, number of threads, device
and version of torch: the newest. Nothing is estimated, and a file that is missing or broken holds no
figure. Knows nothing of how a figure is measured; needs no torch.
"""

import json
import logging
import math
import os
import tempfile
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from playground.registry import environment, manifest
from playground.registry.default_target import cache_root

log = logging.getLogger(__name__)
MAX_KEPT = 200  # older figures go first


@dataclass(frozen=True, slots=True)
class Speed:
    """One measured figure, and on what it was measured."""

    model: str
    precision: str
    threads: int
    device_name: str
    torch: str
    tokens_per_second: float
    measured_at: str  # ISO 8601, UTC

    @property
    def date(self) -> str:
        """The day of the measurement, such as 2026-11-29."""
        return self.measured_at[:10]


@dataclass(frozen=True, slots=True)
class Step:
    """How far the measurement of one precision is.

    `stage` is that of a Progress, "measured" with `tokens_per_second`, or "failed" with the reason in `message`.
    """

    precision: str
    stage: str
    message: str = ""
    fraction: float | None = None
    tokens_per_second: float | None = None


class Speeds:
    """Figures in a file. Reading never fails; a figure that cannot be written is logged and lost."""

    def __init__(self, path: Path | None = None):
        self._path = path

    def of(self, model: str) -> dict[str, Speed]:
        """Return the newest figure of each precision of a model, measured on this device with this torch.

        Any number of threads counts: each load of a model chooses it anew.
        """
        here = _here()
        found = [speed for speed in self._read() if (speed.device_name, speed.torch) == here]
        return {speed.precision: speed for speed in found if speed.model == _id(model)}  # the newest is last

    def record(self, model: str, precision: str, threads: int, tokens_per_second: float) -> None:
        """Remember a figure measured just now in place of an older one of the same kind."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        new = Speed(_id(model), precision, threads, *_here(), tokens_per_second, now)
        kept = [speed for speed in self._read() if _kind(speed) != _kind(new)]
        try:
            self._write([*kept, new][-MAX_KEPT:])
        except OSError as error:
            log.warning("The speed of %s in %s could not be remembered: %s", model, precision, error)

    def _read(self) -> list[Speed]:
        try:
            records = json.loads(self._file().read_text(encoding="utf-8"))["speeds"]
            return [speed for speed in map(_speed, records) if speed]
        except (OSError, ValueError, TypeError, LookupError):
            return []

    def _write(self, speeds: list[Speed]) -> None:
        """Write beside the file and rename, so that a reader finds the old figures or the new ones."""
        path = self._file()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"speeds": [asdict(speed) for speed in speeds]}, ensure_ascii=False, indent=1)
        handle, work = tempfile.mkstemp(prefix=f"{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            os.replace(work, path)
        except BaseException:
            Path(work).unlink(missing_ok=True)
            raise

    def _file(self) -> Path:
        return self._path or speeds_path()


def speeds_path() -> Path:
    """Return where this machine's figures are kept (the file may not be there yet)."""
    return cache_root() / "speeds.json"


def _here() -> tuple[str, str]:
    where = environment()
    return where["device_name"], where["torch"]


def _id(model: str) -> str:
    """Return the one name of a model that goes by several."""
    entry = manifest.find(model)
    return entry.id if entry else model.strip()


def _kind(speed: Speed) -> tuple:
    return speed.model, speed.precision, speed.threads, speed.device_name, speed.torch


def _speed(record: object) -> Speed | None:
    """Return the figure that a record of the file holds, or None when it is not one of ours."""
    try:
        speed = Speed(**record)
        datetime.fromisoformat(speed.measured_at)
        whole = all(isinstance(getattr(speed, item.name), item.type) for item in fields(Speed))
        return speed if whole and math.isfinite(speed.tokens_per_second) and speed.tokens_per_second > 0 else None
    except (TypeError, ValueError):
        return None
