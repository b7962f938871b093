"""Small pieces of HTML around the view: notes under a control, the line that says what is loading.

Everything that is not markup of ours is escaped here. Knows no gradio.
"""

from html import escape

from playground.events import Failed, Progress
from playground.speeds import Speed, Step
from playground.ui.text import (
    ABOUT_PRECISIONS,
    MEASURED_ON,
    MEASURING,
    MEASURING_LAST,
    NOT_HERE,
    NOT_MEASURABLE,
    NOT_MEASURED,
    READY,
    SPEEDS_TITLE,
    TAGLINE,
    TITLE,
)
from playground.ui.text_proposers import PROPOSER_HINTS, PROPOSER_SOURCES


def note(*texts: str) -> str:
    """Return each text as a quiet paragraph; nothing for an empty one."""
    return "".join(f'<p class="note">{escape(text)}</p>' for text in texts if text)


def proposer_note(name: str, facts: str = "") -> str:
    """Return how a proposer works, with a link to where it comes from, and what it is made of."""
    words, link = escape(PROPOSER_HINTS.get(name, "")), ""
    if name in PROPOSER_SOURCES:
        title, address = PROPOSER_SOURCES[name]
        link = f'<a href="{escape(address)}" target="_blank" rel="noopener">{escape(title)}</a>'
    return f'<p class="note">{words}{link}</p>{note(facts)}'


def options_note(options: list) -> str:
    """Return why some options cannot be chosen here and what to know about others."""
    words: dict[str, list[str]] = {}
    for item in options:
        words.setdefault(item.detail if item.available else item.reason, []).append(item.label)
    words.pop("", None)
    return _listed(words)


def about_title(options: list) -> str:
    """Return what the block about precisions is called, with those that do not run here."""
    away = [item.label for item in options if not item.available]
    return f"{ABOUT_PRECISIONS} · {NOT_HERE} {', '.join(away)}" if away else ABOUT_PRECISIONS


def _listed(words: dict[str, list[str]]) -> str:
    """Return each text behind the names it is true of."""
    rows = "".join(f"<li><b>{escape(', '.join(names))}</b> {escape(text)}</li>" for text, names in words.items())
    return f'<div class="note"><ul>{rows}</ul></div>' if rows else ""


def speeds_table(options: list, speeds: dict[str, Speed], steps: dict[str, Step] | None = None) -> str:
    """Return tokens/s by precision, with the day of each; where a measurement goes on, how far it is."""
    steps, reasons, rows = steps or {}, {}, []
    for item in (item for item in options if item.available):
        step = steps.get(item.id)
        if step and step.stage == "failed":
            reasons.setdefault(step.message, []).append(item.label)
        rows.append(f'<tr><th scope="row">{escape(item.label)}</th>{_speed_cells(speeds.get(item.id), step)}</tr>')
    table = f'<table class="speeds"><caption>{escape(SPEEDS_TITLE)}</caption>{"".join(rows)}</table>'
    return f"{table if rows else ''}{_listed(reasons)}"


def _speed_cells(speed: Speed | None, step: Step | None) -> str:
    if step and step.stage != "measured":
        words = NOT_MEASURABLE if step.stage == "failed" else MEASURING.get(step.stage, MEASURING_LAST)
        share = "" if step.fraction is None else f" {step.fraction:.0%}"
        kind = "" if step.stage == "failed" else ' class="state"'
        return f'<td colspan="2"{kind}>{escape(words + share)}</td>'
    if speed is None and step is None:
        return f'<td colspan="2">{escape(NOT_MEASURED)}</td>'
    figure = step.tokens_per_second if step else speed.tokens_per_second
    when, on = (speed.date, speed_origin(speed)) if speed else ("", "")
    return f'<td title="{escape(on)}"><b>{speed_number(figure)}</b></td><td>{escape(when)}</td>'


def speed_number(tokens_per_second: float) -> str:
    """Return tokens/s as a person reads them: 44, but 4.4."""
    return f"{tokens_per_second:.0f}" if tokens_per_second >= 9.95 else f"{tokens_per_second:.1f}"


def speed_origin(speed: Speed) -> str:
    """Return on what a figure was measured."""
    threads = f"{speed.threads} thread{'s' if speed.threads != 1 else ''}"
    return MEASURED_ON.format(threads=threads, device_name=speed.device_name, torch=speed.torch)


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
