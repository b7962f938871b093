"""The settings column: what a person may choose for a run, and how the choices become RunSettings.

Ranges and defaults come from `config`; values are checked there, on the server, whatever a slider or
a program sends. Gradio's own checks are off for a run, since their sentences do not say which setting
is meant. Knows no run and no event.
"""

from collections.abc import Callable
from dataclasses import fields

import gradio as gr

from playground.config import DEFAULT_TARGET, DEFAULTS, PRECISIONS, RANGES, RunSettings
from playground.ui.notes import note
from playground.ui.precisions import LISTS, Precisions, speed_updates
from playground.ui.text import (
    AUTO_PRECISION,
    HINTS,
    LABELS,
    PROPOSER_HINTS,
    PROPOSER_LABELS,
    SECTIONS,
    SUGGESTED,
    UNAVAILABLE_SUFFIX,
)

SETTING_NAMES = tuple(item.name for item in fields(RunSettings))
PROPOSER_OPTIONS = {
    "ngram": ("ngram_min", "ngram_max"),
    "draft": ("draft", "draft_precision"),
    "quantized": ("quantized_precision",),
    "none": (),
}


def settings_from(values: dict) -> RunSettings:
    """Build checked settings from the values of the page or of a program.

    Raises ValueError with a sentence for people when something is out of range.
    """
    stops = values["stop_strings"]
    if isinstance(stops, str):
        lines = (line.replace("\\n", "\n").replace("\\t", "\t") for line in stops.splitlines())
        stops = tuple(line for line in lines if line)
    plain = {name: value for name, value in values.items() if value is not None}
    plain = {"prompt": ""} | plain | {"stop_strings": stops or ()}
    return RunSettings(**plain)


def _slider(name: str, value: float, low: float | None = None) -> gr.Slider:
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
    )


def _choice(name: str, choices: list, custom: bool = False, **extra: object) -> gr.Dropdown:
    return gr.Dropdown(
        choices,
        value=extra.pop("value", DEFAULTS[name]),
        label=LABELS[name],
        info=HINTS.get(name),
        allow_custom_value=custom,
        elem_id=f"set-{name}",
        **extra,
    )


def choices_of(options: list) -> list[tuple[str, str]]:
    """Return (label, id) pairs, marking what cannot be chosen here."""
    return [(item.label + ("" if item.available else UNAVAILABLE_SUFFIX), item.id) for item in options]


class Controls:
    """The settings column. `first` holds what it starts with; `inputs` maps a setting's name to its component."""

    def __init__(self, first: dict):
        self.first = DEFAULTS | first
        self.inputs: dict[str, gr.Component] = {}
        with gr.Group(elem_classes="card"):
            self._proposer()
        with gr.Group(elem_classes="card"):
            self._target()
        with gr.Accordion(SECTIONS["sampling"], open=True, elem_classes="card", elem_id="sampling"):
            self._sampling()
        with gr.Accordion(SECTIONS["output"], open=False, elem_classes="card", elem_id="output"):
            self._output()

    def _proposer(self) -> None:
        names = [(PROPOSER_LABELS[name], name) for name in PROPOSER_OPTIONS]
        self.inputs["proposer"] = gr.Radio(
            names, value=self.first["proposer"], label=LABELS["proposer"], elem_id="set-proposer", elem_classes="tiles"
        )
        self.hint = gr.HTML(note(PROPOSER_HINTS[self.first["proposer"]]), elem_id="proposer-hint")
        self.groups: dict[str, gr.Column] = {}
        precisions = [(name, name) for name in PRECISIONS]
        for name in PROPOSER_OPTIONS:
            with gr.Column(visible=name == self.first["proposer"], elem_id=f"for-{name}") as self.groups[name]:
                if name == "ngram":
                    with gr.Row(elem_classes="pair"):
                        for size in ("ngram_min", "ngram_max"):
                            self.inputs[size] = self._number(size)
                elif name == "draft":
                    self.inputs["draft"] = _choice("draft", [], custom=True, value="")
                    self.inputs["draft_precision"] = _choice("draft_precision", precisions, custom=True)
                elif name == "quantized":
                    auto = [(AUTO_PRECISION, "auto"), *precisions]
                    self.inputs["quantized_precision"] = _choice("quantized_precision", auto, custom=True)
        self.inputs["gamma"] = _slider("gamma", self.first["gamma"], low=1)

    def _number(self, name: str) -> gr.Number:
        limits = RANGES[name]
        return gr.Number(
            self.first[name],
            minimum=limits.low,
            maximum=limits.high,
            step=limits.step,
            label=LABELS[name],
            info=HINTS.get(name),
            elem_id=f"set-{name}",
            min_width=90,
        )

    def _target(self) -> None:
        self.inputs["target"] = _choice("target", [(DEFAULT_TARGET, DEFAULT_TARGET)], custom=True)
        self.target_note = gr.HTML("", elem_id="target-note")
        precisions = [(name, name) for name in PRECISIONS]
        self.inputs["target_precision"] = _choice("target_precision", precisions, custom=True)
        self.precisions = Precisions()

    def _sampling(self) -> None:
        self.inputs["temperature"] = _slider("temperature", self.first["temperature"])
        self.inputs["top_p"] = _slider("top_p", self.first["top_p"])
        with gr.Row(elem_classes="pair"):
            self.inputs["top_k"] = self._number("top_k")
            self.inputs["seed"] = self._number("seed")
        self.inputs["max_new_tokens"] = _slider("max_new_tokens", self.first["max_new_tokens"])

    def _output(self) -> None:
        self.inputs["chat_template"] = gr.Checkbox(
            DEFAULTS["chat_template"],
            label=LABELS["chat_template"],
            info=HINTS["chat_template"],
            elem_id="set-chat_template",
        )
        for name, lines in (("system_prompt", 2), ("stop_strings", 2)):
            self.inputs[name] = gr.Textbox(
                self.first[name] or "",
                label=LABELS[name],
                info=HINTS[name],
                lines=lines,
                max_lines=6,
                elem_id=f"set-{name}",
            )

    def show_proposer(self, name: str) -> list:
        """Return updates that show the options of the chosen proposer only."""
        updates = [gr.update(visible=option == name) for option in self.groups]
        return [note(PROPOSER_HINTS.get(name, "")), gr.update(interactive=name != "none"), *updates]

    @property
    def proposer_outputs(self) -> list:
        """The components that `show_proposer` updates."""
        return [self.hint, self.inputs["gamma"], *self.groups.values()]

    def offer(self, options: object, drafts: list, speeds_of: Callable) -> list:
        """Return updates that offer what this machine can run, leaving choices already made alone."""
        draft = first_available(drafts)
        return [
            gr.update(choices=choices_of(options.targets)),
            gr.update(choices=choices_of(drafts), value=draft),
            note(*target_words(options, DEFAULT_TARGET)),
            *self.precisions.describe(options.precisions),
            *speed_updates(options, DEFAULT_TARGET, draft, speeds_of),
        ]

    @property
    def offer_outputs(self) -> list:
        """The components that `offer` updates."""
        chosen = [self.inputs["target"], self.inputs["draft"], self.target_note]
        return [*chosen, *self.precisions.description, *(self.inputs[name] for name in LISTS), self.precisions.table]


def target_words(options: object, target: str) -> list[str]:
    """Return what is worth knowing about a target: its detail or why it cannot run, and what else could."""
    by_id = {item.id: item for item in options.targets}
    words = [options.notice]
    if target in by_id:
        chosen = by_id[target]
        words.insert(0, chosen.detail if chosen.available else chosen.reason)
    suggested = by_id.get(options.suggested_target)
    if suggested and suggested.id not in (target, DEFAULT_TARGET):
        words.append(SUGGESTED.format(label=suggested.label))
    return words


def first_available(options: list) -> str:
    """Return the id of the first option that can be chosen, or nothing."""
    return next((item.id for item in options if item.available), "")
