"""Small pieces of HTML around the view: notes under a control, the line that says what is loading.

Everything that is not markup of ours is escaped here. Knows no gradio.
"""

from html import escape

from playground.events import Failed, Progress
from playground.ui.text import ABOUT_PRECISIONS, NOT_HERE, READY, TAGLINE, TITLE


def note(*texts: str) -> str:
    """Return each text as a quiet paragraph; nothing for an empty one."""
    return "".join(f'<p class="note">{escape(text)}</p>' for text in texts if text)


def options_note(options: list) -> str:
    """Return, folded away, why some options cannot be chosen here and what to know about others."""
    away = [item.label for item in options if not item.available]
    words: dict[str, list[str]] = {}
    for item in options:
        words.setdefault(item.detail if item.available else item.reason, []).append(item.label)
    words.pop("", None)
    if not words:
        return ""
    title = f"{NOT_HERE} {', '.join(away)}" if away else ABOUT_PRECISIONS
    rows = "".join(f"<li><b>{escape(', '.join(names))}</b> {escape(text)}</li>" for text, names in words.items())
    return f'<details class="note"><summary>{escape(title)}</summary><ul>{rows}</ul></details>'


def ready_line(state: Progress | Failed | None, environment: dict | None = None) -> str:
    """Return the line beside Generate: what is loading and how far, that it failed, or that it is ready."""
    if isinstance(state, Failed):
        words = f"{state.message} {state.hint}".strip()
        return f'<div class="ready failed" role="alert"><i></i><span>{escape(words)}</span></div>'
    if state is None:
        words = " · ".join(part for part in (READY, machine(environment or {})) if part)
        return f'<div class="ready ok"><i></i><span>{escape(words)}</span></div>'
    percent = "" if state.fraction is None else f"{state.fraction:.0%}"
    width = "" if state.fraction is None else f' style="width:{100 * state.fraction:.0f}%"'
    kind = "known" if state.fraction is not None else "unknown"
    return (
        f'<div class="ready loading" role="status"><i></i><span>{escape(state.message)} {percent}</span>'
        f'<b class="bar {kind}"><b{width}></b></b></div>'
    )


def machine(environment: dict) -> str:
    """Return in a few words on what a run happens."""
    device = str(environment.get("device", ""))
    name = environment.get("device_name") or device.upper()
    count, unit = (
        environment.get("threads") or environment.get("cores"),
        "thread" if "threads" in environment else "core",
    )
    if not count or device != "cpu":
        return name
    return f"{name}, {count} {unit}{'s' if count != 1 else ''}"


def header() -> str:
    """Return the head of the page."""
    return (
        f'<header class="head"><div><h1>{escape(TITLE)}</h1><p>{escape(TAGLINE)}</p></div>'
        '<button type="button" class="theme" id="theme-toggle"></button></header>'
    )


def preset_note(task: str, expect: str) -> str:
    """Return what to expect of a preset, and why."""
    return f'<p class="expect"><b>{escape(task)}</b>{escape(expect)}</p>'
