"""The Exactness tab: the claim tried on the real engine, and wrong rules that are caught.

Prompt, target, sampling and proposer are those of the Generate tab. Knows no engine.
"""

from collections.abc import Iterator

import gradio as gr

from playground.config import RANGES
from playground.ui.controls import SETTING_NAMES, settings_from
from playground.ui.exactness_view import ExactnessView
from playground.ui.lab_stream import follow, quiet_events
from playground.ui.notes import note
from playground.ui.race_tab import lane_choices, lane_settings
from playground.ui.text import LABELS, NOT_STARTED
from playground.ui.text_labs import (
    EXACTNESS_EMPTY,
    EXACTNESS_INTRO,
    EXACTNESS_NAME,
    FROM_GENERATE,
    LANE_GAMMA,
    NEEDS_TEMPERATURE,
    RULE,
    RULE_LABELS,
    SAMPLES,
    START_RACE,
    STOP,
    TEXT_LENGTH,
)

NAME = EXACTNESS_NAME
FIRST = "draft"  # refused often enough that a wrong rule shows


class ExactnessTab:
    """Components and wiring."""

    def __init__(self, context: object):
        self.playground = context.playground
        gr.HTML(note(EXACTNESS_INTRO, f"{FROM_GENERATE} {NEEDS_TEMPERATURE}"), elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-controls"):
            rules = [(label, name) for name, label in RULE_LABELS.items()]
            rule = gr.Radio(rules, value="right", label=RULE, elem_id="exactness-rule", elem_classes="rules")
            with gr.Column(min_width=200):
                guesser = gr.Dropdown(
                    lane_choices()[1:],
                    value=FIRST,
                    label=LABELS["proposer"],
                    filterable=False,
                    elem_id="exactness-proposer",
                )
                gamma = gr.Slider(1, RANGES["gamma"].high, value=3, step=1, label=LANE_GAMMA, buttons=[])
                samples = gr.Slider(50, 2000, value=300, step=50, label=SAMPLES, buttons=[])
                length = gr.Slider(2, 6, value=3, step=1, label=TEXT_LENGTH, buttons=[])
        with gr.Row(elem_classes="lab-actions"):
            start = gr.Button(START_RACE, variant="primary", scale=0, elem_id="exactness-start")
            stop = gr.Button(STOP, variant="stop", scale=0, elem_id="exactness-stop")
            status = gr.HTML("", elem_id="exactness-status")
        picture = gr.HTML(note(EXACTNESS_EMPTY), elem_id="exactness-view")
        given = [rule, guesser, gamma, samples, length, *(context.inputs[name] for name in SETTING_NAMES)]
        quiet = quiet_events() | {"concurrency_id": "model"}
        run = start.click(self._try, given, [status, picture], concurrency_limit=16, **quiet)
        stop.click(None, cancels=[run])

    def _try(self, rule: str, guesser: str, gamma: int, samples: int, length: int, *given: object) -> Iterator:
        values = dict(zip(SETTING_NAMES, given, strict=True)) | {"max_new_tokens": int(length)}
        values["temperature"] = values["temperature"] or 1.0
        try:
            settings = settings_from(values | lane_settings(settings_from(values), guesser, gamma))
        except ValueError as error:
            raise gr.Error(str(error), title=NOT_STARTED, print_exception=False) from error

        def job(store: object, report: object) -> Iterator:
            from playground.lab.exactness import exactness_of

            return exactness_of(store, settings, int(samples), rule, report)

        yield from follow(self.playground, job, ExactnessView())


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    ExactnessTab(context)
