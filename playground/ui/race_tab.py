"""The Race tab: choose up to three proposers, watch them against plain decoding, read the result.

Everything but lanes and repeats is what the Generate tab has. Knows no engine: `lab.race` runs it.
"""

from collections.abc import Iterator
from functools import partial

import gradio as gr

from playground.config import DEFAULT_TREE, RANGES, RunSettings
from playground.ui.controls import SETTING_NAMES, settings_from
from playground.ui.lab_stream import follow, quiet_events
from playground.ui.notes import note
from playground.ui.race_view import RaceView
from playground.ui.text import NOT_STARTED
from playground.ui.text_labs import (
    FLOAT32_AGAIN,
    FLOAT32_HINT,
    LANE,
    LANE_GAMMA,
    NO_LANE,
    RACE_EMPTY,
    RACE_INTRO,
    RACE_NAME,
    REPEATS,
    REPEATS_HINT,
    START_RACE,
    STOP,
    TREE_SUFFIX,
)
from playground.ui.text_proposers import PROPOSER_LABELS

NAME = RACE_NAME
WITH_TREES = ("eagle", "medusa")
FIRST_LANES = (("ngram", 5), ("quantized", 4), ("", 5))
MAX_REPEATS = 5


def lane_choices() -> list[tuple[str, str]]:
    """Every proposer, those with trees twice, and no lane at all."""
    found = [(NO_LANE, "")]
    for name, label in PROPOSER_LABELS.items():
        if name != "none":
            found.append((label, name))
        if name in WITH_TREES:
            found.append((label + TREE_SUFFIX, f"{name}:tree"))
    return found


def lane_settings(base: RunSettings, chosen: str, gamma: int) -> dict:
    """The settings of one lane as changes to those of the Generate tab."""
    name, _, tree = chosen.partition(":")
    nodes = (base.tree_nodes or DEFAULT_TREE) if tree else 0
    return {"proposer": name, "gamma": int(gamma), "tree_nodes": nodes}


class RaceTab:
    """Components and wiring."""

    def __init__(self, context: object):
        self.playground = context.playground
        gr.HTML(note(RACE_INTRO), elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-controls"):
            lanes = [self._lane(number, *first) for number, first in enumerate(FIRST_LANES)]
            self.repeats = gr.Slider(1, MAX_REPEATS, value=2, step=1, label=REPEATS, info=REPEATS_HINT, buttons=[])
        with gr.Row(elem_classes="lab-actions"):
            start = gr.Button(START_RACE, variant="primary", scale=0, elem_id="race-start")
            again = gr.Button(FLOAT32_AGAIN, scale=0, elem_id="race-float32")
            stop = gr.Button(STOP, variant="stop", scale=0, elem_id="race-stop")
            status = gr.HTML("", elem_id="race-status")
        gr.HTML(note(FLOAT32_HINT), elem_classes="lab-intro")
        picture = gr.HTML(note(RACE_EMPTY), elem_id="race-view")
        given = [component for lane in lanes for component in lane] + [self.repeats]
        given += [context.inputs[name] for name in SETTING_NAMES]
        quiet = quiet_events() | {"concurrency_id": "model"}
        runs = [
            button.click(partial(self._race, precision), given, [status, picture], concurrency_limit=16, **quiet)
            for button, precision in ((start, ""), (again, "float32"))
        ]
        stop.click(None, cancels=runs)

    @staticmethod
    def _lane(number: int, chosen: str, gamma: int) -> tuple[gr.Dropdown, gr.Slider]:
        limits = RANGES["gamma"]
        with gr.Column(min_width=200):
            lane = gr.Dropdown(
                lane_choices(),
                value=chosen,
                label=LANE.format(number=number + 2),
                filterable=False,
                elem_id=f"race-lane-{number}",
            )
            asked = gr.Slider(1, limits.high, value=gamma, step=1, label=LANE_GAMMA, buttons=[])
        return lane, asked

    def _race(self, precision: str, *given: object) -> Iterator[tuple[str, str]]:
        lanes, repeats, values = given[:6], int(given[6]), dict(zip(SETTING_NAMES, given[7:], strict=True))
        if precision:
            values["target_precision"] = precision
        try:
            base = settings_from(values)
            chosen = [lane_settings(base, lanes[i], lanes[i + 1]) for i in (0, 2, 4) if lanes[i]]
            settings = [settings_from(values | {"proposer": "none"})]
            settings += [settings_from(values | changes) for changes in chosen]
        except ValueError as error:
            raise gr.Error(str(error), title=NOT_STARTED, print_exception=False) from error
        names = {value: label for label, value in lane_choices()}
        labels = [PROPOSER_LABELS["none"]]
        labels += [f"{names[lanes[i]]}, gamma {int(lanes[i + 1])}" for i in (0, 2, 4) if lanes[i]]
        view = RaceView(labels, repeats, base.target_precision, base.temperature > 0)

        def job(store: object, report: object) -> Iterator:
            from playground.lab.race import race

            return race(store, settings, repeats, report)

        yield from follow(self.playground, job, view)


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    RaceTab(context)
