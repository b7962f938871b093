"""One request to an OpenAI-compatible server as it streams in: pieces of text, their times, what the server adds.

Server-sent events in, plain values out. Source of what servers add: vLLM puts metrics.speculative_decoding on the
final usage chunk (--per-request-spec-decode-metrics), SGLang sglext.spec_tokens_details (return_spec_tokens_details),
llama.cpp timings.draft_n and .draft_n_accepted (pull request 12603). vLLM and SGLang count tokens in every chunk
when asked for continuous_usage_stats.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MAX_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of the stream: `text` may be "", `num_tokens` is the answer's so far where the server says."""

    text: str = ""
    num_tokens: int | None = None
    acceptance: dict = field(default_factory=dict)


def body(engine: str, model: str, prompt: str, chat: bool, max_tokens: int, temperature: float) -> dict:
    """Return the request; what only some servers know is asked of those only."""
    usage: dict = {"include_usage": True}
    if engine in ("vllm", "sglang"):
        usage["continuous_usage_stats"] = True
    asked: dict = {"model": model, "max_tokens": max_tokens, "temperature": temperature, "stream": True}
    asked |= {"stream_options": usage}
    asked |= {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
    return asked | ({"return_spec_tokens_details": True} if engine == "sglang" else {})


def chunks(pieces: Iterable[bytes]) -> Iterator[Chunk]:
    """Read server-sent events out of bytes as they come; what is no JSON object is left out."""
    waiting = b""
    for piece in pieces:
        waiting += piece
        *lines, waiting = waiting.split(b"\n")
        if len(waiting) > MAX_LINE:
            raise ValueError("The server sends a line without end; this is no event stream.")
        for line in lines:
            found = _event(line)
            if found == "[DONE]":
                return
            if isinstance(found, dict):
                yield _chunk(found)


def _event(line: bytes) -> dict | str | None:
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("data:"):
        return None
    text = text[len("data:") :].strip()
    if text == "[DONE]":
        return text
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _chunk(event: dict) -> Chunk:
    usage = _part(event, "usage").get("completion_tokens")
    if not isinstance(usage, int):
        usage = _part(event, "timings").get("predicted_n")
    return Chunk(_text(event), usage if isinstance(usage, int) else None, acceptance(event))


def _text(event: dict) -> str:
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    delta = _part(first, "delta")
    for value in (delta.get("content"), delta.get("reasoning_content"), delta.get("reasoning"), first.get("text")):
        if isinstance(value, str) and value:
            return value
    return ""


def acceptance(event: dict) -> dict:
    """Return what the server says of this request's acceptance, under our names; empty when it says nothing."""
    vllm = _part(_part(event, "metrics"), "speculative_decoding")
    if vllm:
        return _rates(vllm, "num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens") | {"vllm": vllm}
    sglang = _part(_part(event, "sglext"), "spec_tokens_details")
    if sglang:
        return _rates(sglang, "spec_verify_ct", "spec_num_proposed_drafts", "spec_num_correct_drafts")
    timings = _part(event, "timings")
    return _rates(timings, "", "draft_n", "draft_n_accepted") if "draft_n" in timings else {}


def _rates(found: dict, rounds: str, drafted: str, accepted: str) -> dict:
    num_rounds, num_drafted, num_accepted = (_whole(found.get(name)) for name in (rounds, drafted, accepted))
    known = num_accepted is not None
    return {
        "num_rounds": num_rounds,
        "num_drafted": num_drafted,
        "num_accepted": num_accepted,
        "acceptance_length": 1 + num_accepted / num_rounds if known and num_rounds else None,
        "draft_efficiency": num_accepted / num_drafted if known and num_drafted else None,
    }


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _part(event: dict, name: str) -> dict:
    found = event.get(name)
    return found if isinstance(found, dict) else {}
