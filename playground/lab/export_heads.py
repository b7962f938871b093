"""EAGLE heads that other engines can load, by target. Ours have a file format of their own.

Source: the list of tested and compatible heads in llama.cpp pull request 18039 and vLLM pull request 22333;
all are EAGLE-3 checkpoints of the architecture LlamaForCausalLMEagle3.
"""

from playground.config import RunSettings
from playground.lab.export_base import Unsupported, model_of

PUBLISHED = {
    "Qwen/Qwen3-1.7B": "AngelSlim/Qwen3-1.7B_eagle3",
    "Qwen/Qwen3-4B": "AngelSlim/Qwen3-4B_eagle3",
    "Qwen/Qwen3-8B": "AngelSlim/Qwen3-8B_eagle3",
}


def eagle_head(settings: RunSettings, engine: str) -> tuple[str, str]:
    """Return the Hub name of an EAGLE-3 head for the chosen target, and a note about it.

    Raises:
        Unsupported: none is known for this target.
    """
    target = model_of(settings.target).name
    if target not in PUBLISHED:
        known = ", ".join(name.split("/")[1] for name in PUBLISHED)
        raise Unsupported(
            f"{engine} takes EAGLE-3 heads in the published format, ours are files of this project, and none is known "
            f"for this target. Heads are known for {known}."
        )
    return PUBLISHED[target], f"The head is {PUBLISHED[target]}, published by others, not one trained here."


def chain_note(settings: RunSettings, engine: str) -> tuple[str, ...]:
    """Say that a tree becomes a chain, where it does."""
    return (f"{engine} drafts a chain; the tree of {settings.tree_nodes} stays here.",) if settings.tree_nodes else ()
