"""Snippets for transformers' `generate`.

Source: transformers 5.24.0, generation/configuration_utils.py (prompt_lookup_num_tokens, max_matching_ngram_size,
num_assistant_tokens, num_assistant_tokens_schedule, assistant_confidence_threshold, assistant_early_exit) and
generation/candidate_generator.py, which reads the last three of a draft from *its* generation_config.
"""

from playground.config import RunSettings
from playground.lab.export_base import Snippet, Unsupported, adapted, messages, model_of, python_text

SOURCE = "transformers 5.24, generation/configuration_utils.py and candidate_generator.py"
HEAD = "transformers"
MISSING = {
    "suffix": "transformers has prompt lookup, which takes the first match, but no suffix decoding.",
    "medusa": "transformers has no Medusa heads and no verification of trees.",
    "eagle": "transformers has no EAGLE and no verification of trees.",
    "lookahead": "transformers has no lookahead decoding.",
}
FOUR_BIT = 'quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="{}")'
LOADED = {
    "float32": "dtype=torch.float32",
    "bfloat16": "dtype=torch.bfloat16",
    "float16": "dtype=torch.float16",
    "fp8": "quantization_config=FineGrainedFP8Config()",
    "int8": "quantization_config=BitsAndBytesConfig(load_in_8bit=True)",
    "int4": FOUR_BIT.format("nf4"),
    "nf4": FOUR_BIT.format("nf4"),
    "fp4": FOUR_BIT.format("fp4"),
}
INT4 = "int4 here is a block format of this project; the snippet takes NF4, the nearest that transformers quantizes to."
FULL_DRAFT = "A constant draft length needs a confidence threshold of 0: the default 0.4 stops a draft early."


def plain(settings: RunSettings) -> Snippet:
    """Plain decoding."""
    return _snippet(settings, {})


def ngram(settings: RunSettings) -> Snippet:
    """Prompt lookup. It tries sizes from the largest down to 1 and takes the first match, where ours takes the last."""
    options = {"prompt_lookup_num_tokens": settings.gamma, "max_matching_ngram_size": settings.ngram_max}
    note = f"transformers goes down to 1-grams, not {settings.ngram_min}, and takes the first match, not the latest."
    return _snippet(settings, options, notes=(note,))


def draft(settings: RunSettings) -> Snippet:
    """A draft model with the target's tokenizer."""
    return _assisted(settings, model_of(settings.draft).name, settings.draft_precision)


def quantized(settings: RunSettings) -> Snippet:
    """The target again, quantized while loading."""
    precision = "nf4" if settings.quantized_precision == "auto" else settings.quantized_precision
    return _assisted(settings, model_of(settings.target).name, precision)


def early_exit(settings: RunSettings) -> Snippet:
    """The target's own first layers."""
    note = "Without layers trained for it (LayerSkip) most guesses are refused; the adapter trained here is not used."
    return _snippet(settings, {"assistant_early_exit": settings.exit_layers}, notes=(note,))


def _assisted(settings: RunSettings, name: str, precision: str) -> Snippet:
    policy = settings.gamma_policy
    threshold = settings.confidence_threshold if policy == "confidence" else 0.0
    lines = [
        f"draft = {_loaded(name, precision)}",
        f"draft.generation_config.num_assistant_tokens = {settings.gamma}",
        f'draft.generation_config.num_assistant_tokens_schedule = "{_schedule(policy)}"',
        f"draft.generation_config.assistant_confidence_threshold = {threshold}",
    ]
    notes, full = (INT4,) if precision == "int4" else (), () if threshold else (FULL_DRAFT,)
    return _snippet(settings, {}, "assistant_model=draft", lines, (*notes, *full), known=policy)


def _schedule(policy: str) -> str:
    return "heuristic" if policy == "heuristic" else "constant"


def _loaded(name: str, precision: str) -> str:
    return f'AutoModelForCausalLM.from_pretrained({python_text(name)}, {LOADED[precision]}, device_map="auto")'


def _snippet(
    settings: RunSettings,
    options: dict,
    assisted: str = "",
    lines: list[str] | None = None,
    notes: tuple[str, ...] = (),
    known: str = "",
) -> Snippet:
    """Put the whole program together."""
    if settings.gamma < 1 and settings.proposer != "none":
        raise Unsupported("Gamma 0 is plain decoding: choose the proposer “none”.")
    target = model_of(settings.target).name
    code = [f"model = {_loaded(target, settings.target_precision)}", *(lines or []), *_inputs(settings)]
    given = ["**inputs", *(f"{name}={value}" for name, value in (options | _sampling(settings)).items())]
    given += [assisted] if assisted else []
    if settings.stop_strings:
        given += [f"stop_strings={python_text(list(settings.stop_strings))}", "tokenizer=tokenizer"]
    names = [name for name in ("BitsAndBytesConfig", "FineGrainedFP8Config") if any(name in line for line in code)]
    program = [
        "import torch",
        f"from transformers import {', '.join(['AutoModelForCausalLM', 'AutoTokenizer', *names])}",
        "",
        f"tokenizer = AutoTokenizer.from_pretrained({python_text(target)})",
        *code,
        f"torch.manual_seed({settings.seed})",
        "output = model.generate(",
        *(f"    {item}," for item in given),
        ")",
        'print(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))',
    ]
    kept = [note for note in adapted(HEAD, settings) if not (known in ("heuristic", "confidence") and known in note)]
    extra = (INT4,) if settings.target_precision == "int4" and INT4 not in notes else ()
    return Snippet("\n".join(program) + "\n", "python", SOURCE, (*kept, *extra, *notes))


def _inputs(settings: RunSettings) -> list[str]:
    if not settings.chat_template:
        return [f'inputs = tokenizer({python_text(settings.prompt)}, return_tensors="pt").to(model.device)']
    return [
        f"messages = {python_text(messages(settings))}",
        "inputs = tokenizer.apply_chat_template(",
        '    messages, add_generation_prompt=True, return_tensors="pt", return_dict=True',
        ").to(model.device)",
    ]


def _sampling(settings: RunSettings) -> dict:
    """Sampling as `generate` takes it: temperature, then top-k (0 is off), then top-p."""
    budget = {"max_new_tokens": settings.max_new_tokens}
    if settings.temperature == 0:
        return budget | {"do_sample": False}
    drawn = {"temperature": settings.temperature, "top_k": settings.top_k, "top_p": settings.top_p}
    return budget | {"do_sample": True} | drawn


METHODS = {
    "none": plain,
    "ngram": ngram,
    "draft": draft,
    "quantized": quantized,
    "early-exit": early_exit,
}
