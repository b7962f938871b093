"""Snippets for llama.cpp: weights made into GGUF, `llama-server` with --spec-type, and a request.

Source: llama.cpp docs/speculative.md; pull requests 22397 (--spec-draft-n-max, --spec-ngram-simple-size-n and -m in
place of --draft-max and --spec-ngram-size-*), 22964 (draft-simple, draft-eagle3), 24593 and 24977 (EAGLE-3 and
--target-model-dir), 26389 (spec_decode counters at /metrics).
"""

from playground.config import RunSettings
from playground.lab.export_base import Snippet, Unsupported, adapted, folder_name, model_of, request, served, shell_text
from playground.lab.export_heads import chain_note, eagle_head

SOURCE = "llama.cpp, docs/speculative.md and pull requests 22397, 22964, 24593, 26389"
HEAD, PORT = "llama.cpp", 8080
MISSING = {
    "suffix": "llama.cpp has n-gram lookups of several kinds, but no suffix decoding.",
    "early-exit": "llama.cpp has no early exit.",
    "medusa": "llama.cpp has no Medusa heads.",
}
OUT_TYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int8": "q8_0"}
QUANTS = {"int8": "Q8_0", "int4": "Q4_0", "auto": "Q4_0"}
GGUF = "Run it in a llama.cpp checkout with its programs on the PATH; the first lines make GGUF files of the weights."
WINDOW = "llama-lookahead is an example program; window 15, n-gram size 5 and 15 guesses are fixed in its source."


def plain(settings: RunSettings) -> Snippet:
    """Plain decoding."""
    return _snippet(settings, [], [])


def ngram(settings: RunSettings) -> Snippet:
    """One size of n-gram, the last match, gamma tokens copied."""
    sizes = ["--spec-ngram-simple-size-n", str(settings.ngram_max), "--spec-ngram-simple-size-m", str(settings.gamma)]
    note = f"ngram-simple has one size: {settings.ngram_max}-grams only, nothing smaller."
    return _snippet(settings, [], ["--spec-type", "ngram-simple", *sizes], (note,))


def draft(settings: RunSettings) -> Snippet:
    """A draft model."""
    name = model_of(settings.draft).name
    if name == model_of(settings.target).name:
        raise Unsupported("Draft and target are the same model: choose the proposer “quantized”.")
    options = _drafted("draft-simple", f"{folder_name(name)}-draft.gguf", settings)
    if settings.gamma_policy == "confidence":
        options += ["--spec-draft-p-min", str(settings.confidence_threshold)]
    return _snippet(settings, _converted(name, "-draft", settings.draft_precision), options)


def quantized(settings: RunSettings) -> Snippet:
    """The target again, quantized by llama-quantize."""
    if settings.quantized_precision not in QUANTS:
        raise Unsupported(f"llama.cpp quantizes to int8 (Q8_0) and int4 (Q4_0), not to {settings.quantized_precision}.")
    quant = QUANTS[settings.quantized_precision]
    base = folder_name(model_of(settings.target).name)
    made = [shell_text(["llama-quantize", f"{base}.gguf", f"{base}-{quant}.gguf", quant])]
    return _snippet(settings, made, _drafted("draft-simple", f"{base}-{quant}.gguf", settings))


def eagle(settings: RunSettings) -> Snippet:
    """A published EAGLE-3 head, converted beside its target."""
    head, note = eagle_head(settings, HEAD)
    target = folder_name(model_of(settings.target).name)
    made = _converted(head, "", "bfloat16", ["--target-model-dir", target])
    options = _drafted("draft-eagle3", f"{folder_name(head)}.gguf", settings)
    return _snippet(settings, made, options, (note, *chain_note(settings, HEAD)))


def lookahead(settings: RunSettings) -> Snippet:
    """The example program, which takes a raw prompt."""
    target = model_of(settings.target).name
    file = f"{folder_name(target)}.gguf"
    words = ["llama-lookahead", "-m", file, "-p", settings.prompt, "-n", str(settings.max_new_tokens), "--no-escape"]
    words += ["--temp", str(settings.temperature), "--top-k", str(settings.top_k), "--top-p", str(settings.top_p)]
    words += ["--min-p", "0", "--seed", str(settings.seed)]
    text = "\n".join([*_converted(target, "", settings.target_precision), shell_text(words)]) + "\n"
    return Snippet(text, "shell", "llama.cpp, examples/lookahead", (*adapted(HEAD, settings), GGUF, WINDOW))


def _drafted(kind: str, file: str, settings: RunSettings) -> list[str]:
    return ["--spec-type", kind, "--spec-draft-model", file, "--spec-draft-n-max", str(settings.gamma)]


def _converted(name: str, suffix: str, precision: str, extra: list[str] | None = None) -> list[str]:
    """Commands that fetch a model (a local folder is taken as it is) and write its GGUF file."""
    short = folder_name(name)
    fetched = "/" in name and not name.startswith((".", "/", "~")) and name.count("/") == 1
    fetch = [shell_text(["hf", "download", name, "--local-dir", short + suffix])] if fetched else []
    words = ["python", "convert_hf_to_gguf.py", short + suffix if fetched else name]
    words += ["--outfile", f"{short}{suffix}.gguf", "--outtype", OUT_TYPES.get(precision, "bf16"), *(extra or [])]
    return [*fetch, shell_text(words)]


def _snippet(settings: RunSettings, made: list[str], options: list[str], notes: tuple[str, ...] = ()) -> Snippet:
    if options and settings.gamma < 1:
        raise Unsupported("Gamma 0 is plain decoding: choose the proposer “none”.")
    target, precision = model_of(settings.target).name, settings.target_precision
    if precision not in OUT_TYPES:
        notes = (*notes, f"GGUF has no {precision} of this kind: bf16 is written. llama-quantize makes smaller files.")
    start = ["llama-server", "-m", f"{folder_name(target)}.gguf", "--port", str(PORT), "--metrics", *options]
    text = "\n".join([*_converted(target, "", precision), *made, shell_text(start)])
    text = served(text, request(settings, PORT, no_top_k=0, min_p=0.0))
    kept = [note for note in adapted(HEAD, settings) if not ("confidence" in note and "--spec-draft-p-min" in options)]
    return Snippet(text, "shell", SOURCE, (*kept, GGUF, *notes))


METHODS = {
    "none": plain,
    "ngram": ngram,
    "draft": draft,
    "quantized": quantized,
    "eagle": eagle,
    "lookahead": lookahead,
}
