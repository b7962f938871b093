"""Snippets for SGLang: `sglang.launch_server` with its --speculative-… options, and a request.

Source: sglang 0.5.23, srt/arg_groups/fields/spec.py (every option) and srt/arg_groups/speculative_hook.py (with
top-k 1 the draft tokens are steps + 1: the verified width counts the last committed token too).
"""

from playground.config import RunSettings
from playground.lab.export_base import Snippet, Unsupported, adapted, model_of, request, served, shell_text
from playground.lab.export_heads import eagle_head

SOURCE = "SGLang 0.5.23, srt/arg_groups/fields/spec.py and speculative_hook.py"
HEAD, PORT = "SGLang", 30000
MISSING = {
    "suffix": "SGLang has no suffix decoding; its NGRAM keeps a trie of what was seen, without a share to reach.",
    "early-exit": "SGLang has no early exit.",
    "medusa": "SGLang has no Medusa heads.",
    "lookahead": "SGLang has no lookahead decoding.",
}
DTYPES = ("float32", "bfloat16", "float16")


def plain(settings: RunSettings) -> Snippet:
    """Plain decoding."""
    return _snippet(settings, [])


def ngram(settings: RunSettings) -> Snippet:
    """A trie of n-grams, as a chain: one branch per node."""
    note = "SGLang matches n-grams of any size in a trie shared by all requests; smallest and largest stay here."
    options = ["--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", str(settings.gamma + 1)]
    return _snippet(settings, [*options, "--speculative-ngram-max-bfs-breadth", "1"], (note,))


def draft(settings: RunSettings) -> Snippet:
    """A draft model of its own: STANDALONE."""
    return _snippet(settings, _standalone(settings, model_of(settings.draft).name))


def quantized(settings: RunSettings) -> Snippet:
    """The target again, as an fp8 draft."""
    if settings.quantized_precision not in ("fp8", "auto"):
        raise Unsupported(
            "SGLang quantizes a plain checkpoint while loading to fp8; other precisions need one quantized before."
        )
    options = _standalone(settings, model_of(settings.target).name)
    return _snippet(settings, [*options, "--speculative-draft-model-quantization", "fp8"])


def eagle(settings: RunSettings) -> Snippet:
    """A published EAGLE-3 head; a tree where one is chosen."""
    head, note = eagle_head(settings, HEAD)
    width = settings.tree_top_k if settings.tree_nodes else 1
    nodes = settings.tree_nodes or settings.gamma
    return _snippet(settings, _drafted("EAGLE3", head, settings.gamma, width, nodes), (note,))


def _standalone(settings: RunSettings, name: str) -> list[str]:
    return _drafted("STANDALONE", name, settings.gamma, 1, settings.gamma)


def _drafted(algorithm: str, name: str, steps: int, width: int, nodes: int) -> list[str]:
    sizes = {"num-steps": steps, "eagle-topk": width, "num-draft-tokens": nodes + 1}
    options = ["--speculative-algorithm", algorithm, "--speculative-draft-model-path", name]
    return options + [word for key, value in sizes.items() for word in (f"--speculative-{key}", str(value))]


def _snippet(settings: RunSettings, options: list[str], notes: tuple[str, ...] = ()) -> Snippet:
    if options and settings.gamma < 1:
        raise Unsupported("Gamma 0 is plain decoding: choose the proposer “none”.")
    start = ["python", "-m", "sglang.launch_server", "--model-path", model_of(settings.target).name]
    if settings.target_precision in DTYPES:
        start += ["--dtype", settings.target_precision]
    elif settings.target_precision == "fp8":
        start += ["--quantization", "fp8"]
    else:
        notes = (*notes, f"The target runs in the precision of its checkpoint, not in {settings.target_precision}.")
    extra = {"return_spec_tokens_details": True} if options else {}
    text = served(shell_text([*start, *options, "--enable-metrics"]), request(settings, PORT, no_top_k=-1, **extra))
    return Snippet(text, "shell", SOURCE, (*adapted(HEAD, settings), *notes))


METHODS = {"none": plain, "ngram": ngram, "draft": draft, "quantized": quantized, "eagle": eagle}
