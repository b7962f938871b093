"""Results of a sweep on disk, one line each, so that a stopped one goes on."""

import argparse
import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from playground.config import RunSettings
from playground.lab.compare import Result
from playground.registry.default_target import cache_root


class Kept:
    """The results so far; each is on disk when `add` returns."""

    def __init__(self, path: Path, resume: bool):
        """Open a file of results. Without `resume` it begins anew."""
        self._path = path
        self.results: list[Result] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume and path.is_file():
            self.results = [_read(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
        path.write_text("".join(_line(result) for result in self.results), encoding="utf-8")

    @classmethod
    def beside_cache(cls, options: argparse.Namespace, resume: bool) -> "Kept":
        """The file of a target, precision and length: other sweeps do not mix with it."""
        what = f"{options.target} {options.precision} {options.max_new_tokens}"
        name = hashlib.sha256(what.encode()).hexdigest()[:12]
        return cls(cache_root() / "compare" / f"{name}.jsonl", resume)

    def done(self, base: RunSettings) -> set[tuple[str, str]]:
        """Arm keys and prompts that are measured at the temperature of `base`."""
        return {(item.key, item.prompt) for item in self.results if item.temperature == base.temperature}

    def add(self, result: Result) -> None:
        """Keep one result."""
        self.results.append(result)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_line(result))


def _line(result: Result) -> str:
    return json.dumps(asdict(result), ensure_ascii=False) + "\n"


def _read(line: str) -> Result:
    record = json.loads(line)
    return Result(**record | {"depths": tuple(record["depths"])})
