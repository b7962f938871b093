"""Snippets for TensorRT-LLM: a configuration file for `trtllm-serve`, and a request.

Source: TensorRT-LLM 1.4.0rc4, features/speculative-decoding.html (decoding_type NGram, DraftTarget, Eagle3, SA; the
options go into a YAML file given as --config) and the pages of NGramDecodingConfig and SADecodingConfig.
"""

import shlex

from playground.config import RunSettings
from playground.lab.export_base import Snippet, Unsupported, adapted, json_text, model_of, request, served, shell_text
from playground.lab.export_heads import eagle_head

SOURCE = "TensorRT-LLM 1.4, features/speculative-decoding and the LLM API reference"
HEAD, PORT, FILE = "TensorRT-LLM", 8000, "speculative.yaml"
MISSING = {
    "quantized": "TensorRT-LLM does not quantize a draft while loading: make a quantized checkpoint first "
    "(NVIDIA ModelOpt) and choose it as a draft model.",
    "early-exit": "TensorRT-LLM has no early exit.",
    "medusa": "Medusa existed in TensorRT-LLM's old engine flow only, which is gone; the PyTorch backend has none.",
    "lookahead": "Lookahead existed in TensorRT-LLM's old engine flow only, which is gone.",
}
DTYPES = ("float32", "bfloat16", "float16")


def plain(settings: RunSettings) -> Snippet:
    """Plain decoding."""
    return _snippet(settings, {})


def ngram(settings: RunSettings) -> Snippet:
    """A pool of n-grams per request, its newest continuation first, as ours."""
    config = {"decoding_type": "NGram", "max_matching_ngram_size": settings.ngram_max}
    config |= {"is_keep_all": True, "is_use_oldest": False, "is_public_pool": False}
    return _snippet(settings, config, ("There is no smallest n-gram size.",), overlap=False)


def suffix(settings: RunSettings) -> Snippet:
    """The suffix automaton: longest match, any length; -1 means no limit."""
    note = "SA copies what followed the longest match; it has no smallest share and no frequencies."
    return _snippet(settings, {"decoding_type": "SA", "max_matching_ngram_size": -1}, (note,))


def draft(settings: RunSettings) -> Snippet:
    """A draft model."""
    config = {"decoding_type": "DraftTarget", "speculative_model": model_of(settings.draft).name}
    return _snippet(settings, config, overlap=False)


def eagle(settings: RunSettings) -> Snippet:
    """A published EAGLE-3 head; a dynamic tree where one is chosen."""
    head, note = eagle_head(settings, HEAD)
    config: dict = {"decoding_type": "Eagle3", "speculative_model": head}
    if settings.tree_nodes:  # max_draft_len <= total <= top-k · max_draft_len, as the documentation asks
        total = min(max(settings.tree_nodes, settings.gamma), settings.tree_top_k * settings.gamma)
        config |= {"use_dynamic_tree": True, "dynamic_tree_max_topK": settings.tree_top_k}
        config["max_total_draft_tokens"] = total
    return _snippet(settings, config, (note,))


def _snippet(settings: RunSettings, config: dict, notes: tuple[str, ...] = (), overlap: bool = True) -> Snippet:
    if config and settings.gamma < 1:
        raise Unsupported("Gamma 0 is plain decoding: choose the proposer “none”.")
    lines = [] if overlap else ["disable_overlap_scheduler: true"]
    if settings.target_precision in DTYPES:
        lines.append(f"dtype: {settings.target_precision}")
    else:
        notes = (*notes, f"The target runs in the precision of its checkpoint, not in {settings.target_precision}.")
    if config:  # values as JSON, which YAML reads
        config["max_draft_len"] = settings.gamma
        lines += ["speculative_config:", *(f"  {key}: {json_text(value)}" for key, value in config.items())]
    start = ["trtllm-serve", model_of(settings.target).name, "--port", str(PORT)]
    text = shell_text([*start, "--config", FILE] if lines else start)
    if lines:
        written = " \\\n  ".join(shlex.quote(line) for line in lines)
        text = f"printf '%s\\n' \\\n  {written} > {FILE}\n{text}"
    text = served(text, request(settings, PORT, no_top_k=0))
    return Snippet(text, "shell", SOURCE, (*adapted(HEAD, settings), *notes))


METHODS = {"none": plain, "ngram": ngram, "suffix": suffix, "draft": draft, "eagle": eagle}
