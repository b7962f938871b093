"""The Cost and load tab: where a pass stops being nearly free, and what is left of the gain under load.

The same as `load`. Target, sampling and the proposers' own options are those of the Generate tab. Knows no
engine: `lab.load` runs it.
"""

import json
from collections.abc import Iterator
from html import escape
from typing import Any

import gradio as gr

from playground.config import RANGES, RunSettings
from playground.events import Progress
from playground.lab.compare_arms import TASKS, held_out
from playground.lab.load_command import CURVE_CYCLES, PER_TASK, prompts_in_turn
from playground.lab.load_plan import BATCHABLE, BATCHES, LENGTH, MAX_CYCLES, LoadPlan, check_load
from playground.lab.load_plan import CYCLES as REPEATS
from playground.lab.load_table import Assumed
from playground.ui import text_cost as words
from playground.ui.controls import SETTING_NAMES, settings_from
from playground.ui.cost_view import CostView, record
from playground.ui.lab_stream import download_script, follow, progress_note, quiet_events
from playground.ui.notes import note
from playground.ui.text import NOT_STARTED
from playground.ui.text_proposers import PROPOSER_LABELS

NAME = words.COST_NAME
PRECISIONS = ("bfloat16", "int8", "int4", "float32")
CONTEXTS, FIRST_CONTEXTS = (128, 512, 2048, 4096), (128, 512)
FIRST_TASKS = ("edit", "code", "summarise")  # what there is something to look up in
MAX_KEPT = 32


class CostTab:
    """Components and wiring. The newest measurement of each browser session is kept: sliders redraw it."""

    def __init__(self, context: Any):
        self.playground = context.playground
        self._views: dict[str | None, CostView] = {}
        gr.HTML(note(words.COST_INTRO, words.COST_FROM), elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-controls"):
            measured, assumed, decoded = self._curve_controls(), self._assumed_controls(), self._load_controls()
        with gr.Row(elem_classes="lab-actions"):
            start = gr.Button(words.START, variant="primary", scale=0, elem_id="cost-start")
            stop = gr.Button(words.STOP, variant="stop", scale=0, elem_id="cost-stop")
            file = gr.Button(words.JSON, scale=0, elem_id="cost-json")
            status = gr.HTML("", elem_id="cost-status")
        picture = gr.HTML(note(words.EMPTY), elem_id="cost-view")
        held = gr.Textbox(visible=False)
        given = [*measured, *assumed, *decoded, *(context.inputs[name] for name in SETTING_NAMES)]
        quiet = quiet_events()
        run = start.click(
            self._measure, given, [status, picture], concurrency_id="model", concurrency_limit=16, **quiet
        )
        stop.click(lambda: note(words.STOPPED), None, status, cancels=[run], queue=False, **quiet)
        changes = [slider.change for slider in assumed]
        gr.on(changes, self._again, assumed, picture, trigger_mode="always_last", queue=False, **quiet)
        saved = file.click(self._json, None, held, queue=False, **quiet)
        saved.then(None, held, None, js=download_script("load.json"), queue=False, **quiet)

    @staticmethod
    def _curve_controls() -> list[gr.Component]:
        with gr.Column(min_width=260):
            return [
                gr.CheckboxGroup(
                    list(PRECISIONS),
                    value=list(PRECISIONS[:1]),
                    label=words.PRECISIONS,
                    info=words.PRECISIONS_HINT,
                    elem_id="cost-precisions",
                ),
                gr.CheckboxGroup(
                    list(CONTEXTS), value=list(FIRST_CONTEXTS), label=words.CONTEXTS, elem_id="cost-contexts"
                ),
                gr.Slider(1, 15, value=CURVE_CYCLES, step=1, label=words.CYCLES, info=words.CYCLES_HINT, buttons=[]),
                gr.Slider(
                    1, MAX_CYCLES, value=REPEATS, step=1, label=words.REPEATS, info=words.REPEATS_HINT, buttons=[]
                ),
            ]

    @staticmethod
    def _assumed_controls() -> list[gr.Component]:
        high = RANGES["gamma"].high
        with gr.Column(min_width=240):
            return [
                gr.Slider(
                    0, 1, 0.7, step=0.01, label=words.ALPHA, info=words.ALPHA_HINT, buttons=[], elem_id="cost-alpha"
                ),
                gr.Slider(
                    1, high, 4, step=1, label=words.GAMMA, info=words.GAMMA_HINT, buttons=[], elem_id="cost-gamma"
                ),
                gr.Slider(0, 1, 0, step=0.01, label=words.C, info=words.C_HINT, buttons=[], elem_id="cost-c"),
            ]

    @staticmethod
    def _load_controls() -> list[gr.Component]:
        choices = [(PROPOSER_LABELS[name], name) for name in BATCHABLE]
        with gr.Column(min_width=260):
            return [
                gr.Dropdown(
                    choices, value=BATCHABLE[0], label=words.PROPOSER, filterable=False, elem_id="cost-proposer"
                ),
                gr.CheckboxGroup(
                    list(BATCHES),
                    value=list(BATCHES),
                    label=words.BATCHES,
                    info=words.BATCHES_HINT,
                    elem_id="cost-batches",
                ),
                gr.CheckboxGroup(list(TASKS), value=list(FIRST_TASKS), label=words.TASKS),
                gr.Slider(8, 128, value=LENGTH, step=8, label=words.LENGTH, buttons=[]),
            ]

    def _measure(self, request: gr.Request, *given: Any) -> Iterator:
        precisions, contexts, cycles, repeats, alpha, gamma, c, proposer, batches, tasks, length, *rest = given
        try:
            if not precisions or not contexts:
                raise ValueError(words.NEEDS)
            values = dict(zip(SETTING_NAMES, rest, strict=True)) | {"prompt": "-"}
            base = settings_from(values | {"proposer": proposer, "gamma": int(gamma), "tree_nodes": 0})
            plan = plan_of(base, batches, tasks, int(length), int(repeats))
        except ValueError as error:
            raise gr.Error(str(error), title=NOT_STARTED, print_exception=False) from error
        view = CostView(Assumed(alpha, int(gamma), c))
        self._views.pop(request.session_hash, None)
        self._views[request.session_hash] = view
        while len(self._views) > MAX_KEPT:
            del self._views[next(iter(self._views))]
        wanted = [name for name in PRECISIONS if name in precisions], [int(item) for item in contexts], int(cycles)

        def job(store: object, report: object) -> Iterator:
            from playground.lab.load import curves_and_load

            return curves_and_load(store, base, *wanted, plan, report)

        yield from follow(self.playground, job, view, progress_bar)

    def _again(self, request: gr.Request, alpha: float, gamma: int, c: float) -> Any:
        """Draw what was measured with other assumptions."""
        view = self._views.get(request.session_hash)
        if view is None:
            return gr.skip()
        view.assumed = Assumed(alpha, int(gamma), c)
        return view.html()

    def _json(self, request: gr.Request) -> str:
        view = self._views.get(request.session_hash)
        return json.dumps(record(view), ensure_ascii=False, indent=1) if view and view.curves else ""


def plan_of(base: RunSettings, batches: list, tasks: list, length: int, repeats: int) -> LoadPlan | None:
    """Which batches to decode, None without any. Raises ValueError for what cannot be decoded."""
    if not batches:
        return None
    if not tasks:
        raise ValueError(words.NEEDS_TASK)
    check_load(base.proposer, base.gamma)
    return LoadPlan(tuple(int(batch) for batch in batches), prompts_in_turn(held_out(tasks, PER_TASK)), length, repeats)


def progress_bar(news: Progress) -> str:
    """What goes on, and a bar where its share is known."""
    bar = ""
    if news.fraction is not None:
        label = escape(news.message, quote=True)
        bar = f'<progress max="1" value="{news.fraction:.3f}" aria-label="{label}"></progress>'
    return f"{progress_note(news)}{bar}"


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    CostTab(context)
