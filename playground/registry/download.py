"""Runs a download in a process of its own and reports how far it is.

The process can be ended at once, whatever it is doing, which a thread cannot: an exception raised by
`progress` (someone pressed Stop) ends it. How far it is, is read from the size of the folder it
fills. Knows nothing of what is downloaded, nor from where.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

Progress = Callable[[str, str, float | None], None]
POLL_S = 0.2


def run_download(
    command: list[str], folder: Path, num_bytes: int, label: str, progress: Progress, environment: dict | None = None
) -> tuple[int, str]:
    """Run `command` until it ends, reporting the growth of `folder`.

    Args:
        command: program and arguments.
        folder: where the files appear, temporary ones included.
        num_bytes: the size expected in the end.
        label: what is downloaded, for the sentence shown.
        progress: called with ("downloading", sentence, fraction) every 0.2 s.
        environment: variables set on top of this process's own.

    Returns:
        The exit code and all the command wrote.
    """
    with tempfile.TemporaryFile() as log:
        variables = os.environ | (environment or {})
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=variables)
        try:
            while process.poll() is None:
                fraction = min(size_of(folder) / num_bytes, 1.0)
                message = f"Downloading {label}: {fraction:.0%} of {num_bytes / 1e6:,.0f} MB"
                progress("downloading", message, fraction)
                time.sleep(POLL_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        log.seek(0)
        return process.returncode, log.read().decode(errors="replace")


def size_of(folder: Path) -> int:
    """Add up the sizes of all files below `folder`; links, and files that vanish meanwhile, count nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += 0 if path.is_symlink() or not path.is_file() else path.stat().st_size
        except OSError:
            continue
    return total


def network_error(log: str) -> bool:
    """Say whether what a download wrote speaks of a network out of reach."""
    signs = ("connection", "connecterror", "timed out", "timeout", "name resolution", "name or service", "proxy", "ssl")
    return any(sign in log.lower() for sign in signs)


def disk_full(log: str) -> bool:
    """Say whether what a download wrote speaks of a full disk."""
    return any(sign in log.lower() for sign in ("no space left", "errno 28", "os error 28", "disk quota"))
