"""The chosen setting as a snippet for another engine, or the reason why there is none.

A table engine × proposer: every cell is a function from settings to text, or a sentence. Pure strings; knows no
torch and asks nobody. Field names were checked against the sources named in each engine's file.
"""

from dataclasses import dataclass
from types import ModuleType

from playground.config import RunSettings
from playground.lab import export_llama_cpp, export_sglang, export_tensorrt_llm, export_transformers, export_vllm
from playground.lab.export_base import Unsupported

ENGINES: dict[str, ModuleType] = {
    "transformers": export_transformers,
    "vllm": export_vllm,
    "sglang": export_sglang,
    "tensorrt-llm": export_tensorrt_llm,
    "llama.cpp": export_llama_cpp,
}
LABELS = {name: engine.HEAD for name, engine in ENGINES.items()}
TEACHING = {
    "self": "The target as its own draft is there to learn from; no engine would gain by it.",
    "oracle": "An oracle knows the answer beforehand; it exists to learn from.",
    "noisy-oracle": "An oracle knows the answer beforehand; it exists to learn from. (vLLM's rejection_sample_method "
    "“synthetic” accepts at a chosen rate, for benchmarks: its text is not the target's.)",
    "random": "Random guesses exist to learn from; no engine proposes them.",
}


@dataclass(frozen=True, slots=True)
class Export:
    """One cell of the table: `text` in `language`, or else the `reason` why the engine has nothing for it."""

    engine: str
    proposer: str
    text: str = ""
    language: str = "shell"
    reason: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""


def export(settings: RunSettings, engine: str) -> Export:
    """Return the snippet for these settings on one engine.

    Args:
        engine: a name of ENGINES.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
    module, proposer = ENGINES[engine], settings.proposer
    reason = TEACHING.get(proposer) or module.MISSING.get(proposer)
    if reason:
        return Export(engine, proposer, reason=reason, source=module.SOURCE)
    try:
        made = module.METHODS[proposer](settings)
    except Unsupported as error:
        return Export(engine, proposer, reason=str(error), source=module.SOURCE)
    return Export(engine, proposer, made.text, made.language, notes=made.notes, source=made.source)
