"""Snippets for vLLM: `vllm serve` with `--speculative-config`, and a request.

Source: vllm 0.33.0, vllm/config/speculative.py (SpeculativeMethod and the fields of SpeculativeConfig); its
documentation, features/speculative_decoding/{n_gram,suffix,draft_model,eagle,acceptance_metrics}.md.
"""

from playground.config import RunSettings
from playground.lab.export_base import Snippet, Unsupported, adapted, json_text, model_of, request, served, shell_text
from playground.lab.export_heads import chain_note, eagle_head

SOURCE = "vLLM 0.33, vllm/config/speculative.py and docs/features/speculative_decoding"
HEAD, PORT = "vLLM", 8000
MISSING = {
    "early-exit": "vLLM has no early exit: its drafts are n-grams, suffixes, or models with weights of their own.",
    "medusa": "vLLM's documentation no longer lists Medusa. Releases that have it (method “medusa”) take heads in the "
    "published format; ours are files of this project.",
    "lookahead": "vLLM has no lookahead decoding.",
}
DTYPES = ("float32", "bfloat16", "float16")
QUANTIZED = {"fp8": "fp8", "int4": "bitsandbytes", "nf4": "bitsandbytes", "auto": "bitsandbytes"}
BITSANDBYTES = "vLLM quantizes to 4 bit while loading as NF4, through bitsandbytes."


def plain(settings: RunSettings) -> Snippet:
    """Plain decoding."""
    return _snippet(settings, {})


def ngram(settings: RunSettings) -> Snippet:
    """Lookup of n-grams in prompt and output."""
    sizes = {"prompt_lookup_min": settings.ngram_min, "prompt_lookup_max": settings.ngram_max}
    return _snippet(settings, {"method": "ngram"} | sizes)


def suffix(settings: RunSettings) -> Snippet:
    """Suffix decoding, from the package arctic-inference."""
    config = {"method": "suffix", "suffix_decoding_min_token_prob": settings.min_share}
    note = "Needs `pip install arctic-inference`; vLLM also keeps the answers of earlier requests to look up in."
    return _snippet(settings, config, (note,))


def draft(settings: RunSettings) -> Snippet:
    """A draft model; drawn or its likeliest token, as chosen here."""
    config = {"method": "draft_model", "model": model_of(settings.draft).name}
    notes = () if settings.draft_precision in DTYPES else ("The draft runs in the precision of its checkpoint.",)
    return _snippet(settings, config | _drawn(settings), notes)


def quantized(settings: RunSettings) -> Snippet:
    """The target again, quantized while loading."""
    if settings.quantized_precision not in QUANTIZED:
        raise Unsupported(
            f"vLLM quantizes a model while loading to fp8 or 4-bit NF4, not to {settings.quantized_precision}."
        )
    config = {"method": "draft_model", "model": model_of(settings.target).name}
    config["quantization"] = QUANTIZED[settings.quantized_precision]
    notes = (BITSANDBYTES,) if config["quantization"] == "bitsandbytes" else ()
    return _snippet(settings, config | _drawn(settings), notes)


def eagle(settings: RunSettings) -> Snippet:
    """A published EAGLE-3 head; always a chain."""
    head, note = eagle_head(settings, HEAD)
    return _snippet(settings, {"method": "eagle3", "model": head}, (note, *chain_note(settings, HEAD)))


def _drawn(settings: RunSettings) -> dict:
    greedy = settings.greedy_draft or settings.temperature == 0
    return {"draft_sample_method": "greedy" if greedy else "probabilistic"}


def _snippet(settings: RunSettings, config: dict, notes: tuple[str, ...] = ()) -> Snippet:
    if config and settings.gamma < 1:
        raise Unsupported("Gamma 0 is plain decoding: choose the proposer “none”.")
    start = ["vllm", "serve", model_of(settings.target).name]
    if settings.target_precision in DTYPES:
        start += ["--dtype", settings.target_precision]
    elif settings.target_precision in QUANTIZED:
        start += ["--quantization", QUANTIZED[settings.target_precision]]
    else:
        notes = (*notes, f"The target runs in the precision of its checkpoint, not in {settings.target_precision}.")
    if config:
        config["num_speculative_tokens"] = settings.gamma
        start += ["--speculative-config", json_text(config), "--per-request-spec-decode-metrics", "detailed"]
    text = served(shell_text(start), request(settings, PORT, no_top_k=0))
    return Snippet(text, "shell", SOURCE, (*adapted(HEAD, settings), *notes))


METHODS = {
    "none": plain,
    "ngram": ngram,
    "suffix": suffix,
    "draft": draft,
    "quantized": quantized,
    "eagle": eagle,
}
