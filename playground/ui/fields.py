"""Form fields for single settings: ranges and defaults from `config`, words from `text`."""

import gradio as gr

from playground.config import DEFAULTS, PRECISIONS, RANGES
from playground.ui.text import HINTS, LABELS, PLACEHOLDERS

PRECISION_CHOICES = [(name, name) for name in PRECISIONS]


def slider(name: str, value: float, low: float | None = None, **extra: object) -> gr.Slider:
    """Make the slider of a setting, over its range or from `low` on."""
    limits = RANGES[name]
    return gr.Slider(
        limits.low if low is None else low,
        limits.high,
        value=value,
        step=limits.step,
        label=LABELS[name],
        info=HINTS.get(name),
        elem_id=f"set-{name}",
        buttons=[],
        **extra,
    )


def number(name: str, value: float, **extra: object) -> gr.Number:
    """Make the small number field of a setting."""
    limits = RANGES[name]
    return gr.Number(
        value,
        minimum=limits.low,
        maximum=limits.high,
        step=limits.step,
        label=LABELS[name],
        info=HINTS.get(name),
        elem_id=f"set-{name}",
        min_width=90,
        **extra,
    )


def checkbox(name: str, value: bool, **extra: object) -> gr.Checkbox:
    """Make the checkbox of a setting."""
    return gr.Checkbox(value, label=LABELS[name], info=HINTS.get(name), elem_id=f"set-{name}", **extra)


def choice(name: str, choices: list, custom: bool = True, **extra: object) -> gr.Dropdown:
    """Make the list of a setting; with `custom` any text may be typed, and is checked when a run starts."""
    return gr.Dropdown(
        choices,
        value=extra.pop("value", DEFAULTS[name]),
        label=LABELS[name],
        info=extra.pop("info", HINTS.get(name)),
        allow_custom_value=custom,
        elem_id=f"set-{name}",
        **extra,
    )


def text_field(name: str, value: str, **extra: object) -> gr.Textbox:
    """Make the text field of a setting, two lines high at first."""
    return gr.Textbox(
        value,
        label=LABELS[name],
        info=HINTS.get(name),
        placeholder=PLACEHOLDERS.get(name),
        lines=2,
        max_lines=6,
        elem_id=f"set-{name}",
        **extra,
    )
