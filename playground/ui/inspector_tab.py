"""The tab that shows one round of the run on the Generate tab. Reads events only; runs no model."""

from typing import Any

import gradio as gr

from playground.config import RANGES, SamplingConfig
from playground.ui.inspector_view import round_html
from playground.ui.lab_stream import quiet_events
from playground.ui.notes import note
from playground.ui.round_facts import RoundFacts, rounds_of
from playground.ui.text import LABELS
from playground.ui.text_inspector import (
    INSPECTOR_INTRO,
    INSPECTOR_NAME,
    NEXT,
    NEXT_REFUSAL,
    PREVIOUS,
    RESET,
    ROUND,
    WHAT_IF,
    WHAT_IF_HINT,
)
from playground.ui.what_if_view import what_if_html

NAME = INSPECTOR_NAME
SAMPLING = ("temperature", "top_p", "seed")


class InspectorTab:
    """Components and wiring."""

    def __init__(self, context: Any):
        self.runs = context.runs
        gr.HTML(note(INSPECTOR_INTRO), elem_classes="lab-intro")
        shown_run = gr.State("")
        with gr.Row(elem_classes="lab-actions"):
            back = gr.Button(PREVIOUS, scale=0, elem_id="inspector-previous")
            number = gr.Slider(1, 2, value=1, step=1, label=ROUND, buttons=[], elem_id="inspector-round", min_width=220)
            on = gr.Button(NEXT, scale=0, elem_id="inspector-next")
            refusal = gr.Button(NEXT_REFUSAL, scale=0, elem_id="inspector-refusal")
        picture = gr.HTML(round_html(None, 0), elem_id="inspector-view")
        with gr.Group(elem_classes="card what-if"):
            gr.HTML(f"<h3>{WHAT_IF}</h3>{note(WHAT_IF_HINT)}")
            with gr.Row():
                sliders = [_slider(name) for name in SAMPLING]
            with gr.Row(elem_classes="lab-actions"):
                reset = gr.Button(RESET, scale=0, elem_id="what-if-reset")
            again = gr.HTML("", elem_id="what-if-view")
        quiet = quiet_events() | {"queue": False}
        everything = [shown_run, number, *sliders, picture, again]
        context.tabs[NAME].select(self._follow, [shown_run, number, *sliders], everything, **quiet)
        # a token's round, asked for where it is shown
        context.shown["view"].expand(self._ask, None, [context.shown["tabs"], *everything], **quiet)
        steps = {back: -1, on: 1, refusal: 0}
        for button, step in steps.items():
            button.click(self._step(step), [number, *sliders], [number, picture, again], **quiet)
        number.release(self._show, [number, *sliders], [picture, again], **quiet)
        gr.on(
            [each.release for each in sliders[:2]] + [sliders[2].input], self._judge, [number, *sliders], again, **quiet
        )
        reset.click(self._reset, number, [*sliders, again], **quiet)

    def _rounds(self, request: gr.Request) -> list[RoundFacts]:
        return rounds_of(self.runs.events(request.session_hash) or [])

    def _follow(self, shown: str, number: int, temperature, top_p, seed, request: gr.Request) -> list:
        """Show the newest run: the same round of a run shown before, else its first rejection."""
        run = self.runs.name(request.session_hash)
        rounds = self._rounds(request)
        if run != shown or not rounds:
            return self._opened(rounds, run, _first_interesting(rounds))
        number = min(int(number), len(rounds))
        same = [gr.skip() for _ in SAMPLING]
        slider = gr.update(maximum=max(2, len(rounds)), value=number)
        return [run, slider, *same, *_pictures(rounds, number, temperature, top_p, seed)]

    def _ask(self, request: gr.Request, event: gr.EventData) -> list:
        """Go where the view points: a token's round here, or another tab."""
        tab = str(event._data.get("tab", NAME))
        if tab != NAME:
            return [gr.Tabs(selected=tab), *(gr.skip() for _ in range(4 + len(SAMPLING)))]
        rounds = self._rounds(request)
        number = int(event._data.get("round", 1))
        return [gr.Tabs(selected=NAME), *self._opened(rounds, self.runs.name(request.session_hash), number)]

    def _opened(self, rounds: list[RoundFacts], run: str, number: int) -> list:
        number = max(1, min(number, len(rounds)))
        sampling = rounds[0].sampling if rounds else SamplingConfig()
        own = (sampling.temperature, sampling.top_p, sampling.seed)
        slider = gr.update(maximum=max(2, len(rounds)), value=number)
        return [run, slider, *own, *_pictures(rounds, number, *own)]

    def _step(self, step: int):
        def go(number: int, temperature, top_p, seed, request: gr.Request) -> list:
            rounds = self._rounds(request)
            goal = int(number) + step
            if step == 0:
                refused = [i for i, facts in enumerate(rounds, 1) if facts.has_refusal]
                goal = next((i for i in refused if i > number), refused[0] if refused else int(number))
            goal = max(1, min(goal, len(rounds) or 1))
            return [goal, *_pictures(rounds, goal, temperature, top_p, seed)]

        return go

    def _show(self, number: int, temperature, top_p, seed, request: gr.Request) -> list:
        return _pictures(self._rounds(request), int(number), temperature, top_p, seed)

    def _judge(self, number: int, temperature, top_p, seed, request: gr.Request) -> str:
        return _pictures(self._rounds(request), int(number), temperature, top_p, seed)[1]

    def _reset(self, number: int, request: gr.Request) -> list:
        facts, own = _own(self._rounds(request), int(number))
        return [own.temperature, own.top_p, own.seed, what_if_html(facts, own)]


def _own(rounds: list[RoundFacts], number: int) -> tuple[RoundFacts | None, SamplingConfig]:
    facts = rounds[number - 1] if 0 < number <= len(rounds) else None
    return facts, facts.sampling if facts else SamplingConfig()


def _pictures(rounds: list[RoundFacts], number: int, temperature, top_p, seed) -> list[str]:
    """The round, and the round judged again."""
    facts, own = _own(rounds, number)
    try:
        sampling = SamplingConfig(float(temperature), own.top_k, float(top_p), int(seed))
    except (ValueError, TypeError) as error:
        return [round_html(facts, len(rounds)), note(str(error))]
    return [round_html(facts, len(rounds)), what_if_html(facts, sampling)]


def _first_interesting(rounds: list[RoundFacts]) -> int:
    """The first round with both an acceptance and a rejection, else with a rejection, else the first."""
    refused = [i for i, facts in enumerate(rounds, 1) if facts.has_refusal]
    both = [i for i in refused if any(test.accepted for test in rounds[i - 1].verified.tested)]
    return (both or refused or [1])[0]


def _slider(name: str) -> gr.Slider | gr.Number:
    allowed = RANGES[name]
    if name == "seed":
        return gr.Number(allowed.default, label=LABELS[name], precision=0, elem_id="what-if-seed", min_width=120)
    return gr.Slider(
        allowed.low, allowed.high, allowed.default, step=allowed.step, label=LABELS[name], buttons=[],
        elem_id=f"what-if-{name.replace('_', '-')}", min_width=180,
    )  # fmt: skip


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    InspectorTab(context)
