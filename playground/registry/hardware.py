"""The machine models run on: its device, free memory, and a description for reports.

Needs torch only when asked about a GPU. Knows nothing of models.
"""

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "gradio", "bitsandbytes")


@cache
def device() -> str:
    """Return "cuda" where torch can use an NVIDIA (or ROCm) GPU, else "cpu"."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def free_memory(where: str) -> int:
    """Return the bytes free on "cpu" (main memory) or "cuda" (all GPUs together)."""
    if where == "cuda":
        import torch

        return sum(torch.cuda.mem_get_info(index)[0] for index in range(torch.cuda.device_count()))
    import psutil

    return psutil.virtual_memory().available


def largest_device_memory(where: str) -> int:
    """Return the bytes free on the first single device: what fits without spreading a model."""
    if where == "cuda":
        import torch

        return torch.cuda.mem_get_info(0)[0]
    return free_memory(where)


@cache
def num_cores() -> int:
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def environment() -> dict:
    """Describe machine and software in plain values, for the record of a run."""
    described = {
        "device": device(),
        "device_name": _device_name(),
        "cores": num_cores(),
        "memory_gb": round(_total_memory() / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return described | {package: _version(package) for package in PACKAGES}


def _device_name() -> str:
    if device() == "cuda":
        import torch

        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        return names[0] if len(names) == 1 else f"{len(names)} × {names[0]}"
    return _cpu_name()


def _cpu_name() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _total_memory() -> int:
    if device() == "cuda":
        import torch

        return sum(torch.cuda.mem_get_info(index)[1] for index in range(torch.cuda.device_count()))
    import psutil

    return psutil.virtual_memory().total


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
