"""The settings column: what a person may choose for a run, and how the choices become RunSettings.

Ranges and defaults come from `config`; values are checked there, on the server, whatever a slider or
a program sends. Gradio's own checks are off for a run, since their sentences do not say which setting
is meant. Knows no run and no event.
"""

from collections.abc import Callable
from dataclasses import fields

import gradio as gr

from playground.config import DEFAULT_TARGET, DEFAULTS, RunSettings
from playground.ui.fields import PRECISION_CHOICES, checkbox, choice, number, slider, text_field
from playground.ui.notes import note
from playground.ui.precisions import LISTS, Precisions, speed_updates
from playground.ui.proposer_card import ProposerCard
from playground.ui.text import SECTIONS, SUGGESTED, UNAVAILABLE_SUFFIX

SETTING_NAMES = tuple(item.name for item in fields(RunSettings))


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


def choices_of(options: list) -> list[tuple[str, str]]:
    """Return (label, id) pairs, marking what cannot be chosen here."""
    return [(item.label + ("" if item.available else UNAVAILABLE_SUFFIX), item.id) for item in options]


class Controls:
    """The settings column. `first` holds what it starts with; `inputs` maps a setting's name to its component."""

    def __init__(self, first: dict):
        self.first = DEFAULTS | first
        self.inputs: dict[str, gr.Component] = {}
        with gr.Group(elem_classes="card"):
            self.proposer = ProposerCard(self.first)
            self.inputs |= self.proposer.inputs
        with gr.Group(elem_classes="card"):
            self._target()
        with gr.Accordion(SECTIONS["sampling"], open=True, elem_classes="card", elem_id="sampling"):
            self._sampling()
        with gr.Accordion(SECTIONS["output"], open=False, elem_classes="card", elem_id="output"):
            self._output()

    def _target(self) -> None:
        self.inputs["target"] = choice("target", [(DEFAULT_TARGET, DEFAULT_TARGET)])
        self.target_note = gr.HTML("", elem_id="target-note")
        self.inputs["target_precision"] = choice("target_precision", PRECISION_CHOICES)
        self.precisions = Precisions()

    def _sampling(self) -> None:
        self.inputs["temperature"] = slider("temperature", self.first["temperature"])
        self.inputs["top_p"] = slider("top_p", self.first["top_p"])
        with gr.Row(elem_classes="pair"):
            self.inputs["top_k"] = number("top_k", self.first["top_k"])
            self.inputs["seed"] = number("seed", self.first["seed"])
        self.inputs["max_new_tokens"] = slider("max_new_tokens", self.first["max_new_tokens"])

    def _output(self) -> None:
        self.inputs["chat_template"] = checkbox("chat_template", DEFAULTS["chat_template"])
        for name in ("system_prompt", "stop_strings"):
            self.inputs[name] = text_field(name, self.first[name] or "")

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
