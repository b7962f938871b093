"""The Compare tab: sweeps over proposers, gammas and tasks or own prompts, with advice. The same as `compare`.

Knows no engine: `lab.compare` runs it.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gradio as gr

from playground.lab.compare_arms import ALL_TASKS, OWN_TASK, Arm, held_out, read_prompts
from playground.ui.compare_view import CompareView
from playground.ui.controls import SETTING_NAMES, settings_from
from playground.ui.lab_stream import download_script, follow, quiet_events
from playground.ui.notes import note
from playground.ui.race_tab import lane_choices, lane_settings
from playground.ui.text import NOT_STARTED
from playground.ui.text_compare import (
    COMPARE_INTRO,
    COMPARE_NAME,
    CSV,
    EMPTY,
    ESTIMATE,
    GAMMAS,
    JSON,
    LENGTH,
    NEEDS,
    OWN,
    OWN_FILE,
    PER_TASK,
    PROPOSERS,
    START,
    STOP,
)
from playground.ui.text_compare import TASKS as TASKS_LABEL

NAME = COMPARE_NAME
FIRST = ("ngram", "eagle:tree", "quantized")
GAMMA_CHOICES = (1, 2, 3, 4, 5, 6, 8)
SECONDS_PER_TOKEN = 0.03  # for the estimate only: a plain step of the bundled target on two cores
MAX_KEPT = 32


class CompareTab:
    """Components and wiring. The newest sweep of each browser session is kept for its files."""

    def __init__(self, context: Any):
        self.playground = context.playground
        self._views: dict[str | None, CompareView] = {}
        gr.HTML(note(COMPARE_INTRO), elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-controls"):
            with gr.Column(min_width=240):
                proposers = gr.CheckboxGroup(
                    lane_choices()[1:], value=list(FIRST), label=PROPOSERS, elem_id="compare-who"
                )
                gammas = gr.CheckboxGroup(list(GAMMA_CHOICES), value=[4], label=GAMMAS, elem_id="compare-gammas")
            with gr.Column(min_width=240):
                tasks = gr.CheckboxGroup(list(ALL_TASKS), value=["chat", "edit", "code"], label=TASKS_LABEL)
                count = gr.Slider(1, 5, value=1, step=1, label=PER_TASK, buttons=[])
                length = gr.Slider(16, 256, value=48, step=16, label=LENGTH, buttons=[])
            with gr.Column(min_width=240):
                own = gr.Textbox("", label=OWN, lines=5, elem_id="compare-own")
                file = gr.UploadButton(OWN_FILE, file_types=[".txt", ".jsonl"], size="sm", elem_id="compare-file")
        with gr.Row(elem_classes="lab-actions"):
            start = gr.Button(START, variant="primary", scale=0, elem_id="compare-start")
            stop = gr.Button(STOP, variant="stop", scale=0, elem_id="compare-stop")
            files = [gr.Button(name, scale=0, elem_id=f"compare-{name.lower()}") for name in (CSV, JSON)]
            status = gr.HTML("", elem_id="compare-status")
        picture = gr.HTML(note(EMPTY), elem_id="compare-view")
        held = gr.Textbox(visible=False)
        given = [proposers, gammas, tasks, count, length, own, file, *(context.inputs[n] for n in SETTING_NAMES)]
        quiet = quiet_events()
        run = start.click(
            self._compare, given, [status, picture], concurrency_id="model", concurrency_limit=16, **quiet
        )
        stop.click(None, cancels=[run])
        for button, kind in zip(files, ("csv", "json"), strict=True):
            saved = button.click(getattr(self, f"_{kind}"), None, held, queue=False, **quiet)
            saved.then(None, held, None, js=download_script(f"compare.{kind}"), queue=False, **quiet)

    def _compare(self, request: gr.Request, proposers: list, gammas: list, *rest: Any) -> Iterator:
        tasks, count, length, own, file, *given = rest
        values = dict(zip(SETTING_NAMES, given, strict=True)) | {"max_new_tokens": int(length)}
        try:
            base = settings_from(values)
            if not proposers or not gammas:
                raise ValueError(NEEDS)
            prompts = prompts_of(tasks, int(count), own, file)
        except ValueError as error:
            raise gr.Error(str(error), title=NOT_STARTED, print_exception=False) from error
        names = {value: label for label, value in lane_choices()}
        arms = [
            Arm(f"{names[chosen]}, γ {int(gamma)}", lane_settings(base, chosen, gamma))
            for chosen in proposers
            for gamma in gammas
        ]
        num_runs = len(arms) * sum(map(len, prompts.values()))
        view = CompareView(num_runs)
        self._views.pop(request.session_hash, None)
        self._views[request.session_hash] = view
        while len(self._views) > MAX_KEPT:
            del self._views[next(iter(self._views))]

        def job(store: object, report: object) -> Iterator:
            from playground.lab.compare import compare

            return compare(store, base, arms, prompts, set(), report)

        minutes = num_runs * int(length) * SECONDS_PER_TOKEN / 60
        yield note(ESTIMATE.format(runs=num_runs, minutes=max(1, minutes))), view([])
        yield from follow(self.playground, job, view)

    def _csv(self, request: gr.Request) -> str:
        from playground.lab.compare_table import to_csv

        view = self._views.get(request.session_hash)
        return to_csv(view.results) if view and view.results else ""

    def _json(self, request: gr.Request) -> str:
        from playground.lab.compare_table import recommendation, summaries

        view = self._views.get(request.session_hash)
        if not view or not view.results:
            return ""
        found = summaries(view.results)
        record = {"recommendation": recommendation(found), "summaries": [asdict(item) for item in found]}
        return json.dumps(record | {"results": [asdict(r) for r in view.results]}, ensure_ascii=False, indent=1)


def prompts_of(tasks: list, count: int, own: str, file: str | None) -> dict[str, list[str]]:
    """A file's prompts, else those typed, else held-out ones of the tasks. Raises ValueError when there are none."""
    if file:
        return read_prompts(Path(file))
    typed = [line.strip() for line in own.splitlines() if line.strip()]
    if typed:
        return {OWN_TASK: typed}
    if not tasks:
        raise ValueError("Choose a task, type prompts or give a file.")
    return held_out(tasks, count)


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    CompareTab(context)
