"""The Lessons tab: sets the controls, asks, and answers from the learner's own run or a recording. Escapes all text."""

from html import escape
from typing import Any

import gradio as gr

from playground.config import DEFAULTS
from playground.lab.why import Why, explain
from playground.ui.controls import SETTING_NAMES
from playground.ui.lab_stream import quiet_events
from playground.ui.lessons import LESSONS, Lesson
from playground.ui.notes import note
from playground.ui.recordings import FOLDER, shipped_recording
from playground.ui.runs import FIRST
from playground.ui.text_lessons import (
    ANSWER,
    LESSONS_INTRO,
    LESSONS_NAME,
    LOOK,
    NO_RECORDING,
    QUESTION,
    READY,
    REPLAY,
    REPLAYED,
    REVEAL,
    SET_UP,
    STEP,
    TEACHERS,
    TEACHERS_COLUMNS,
    TEACHERS_INTRO,
)

NAME = LESSONS_NAME
BY_ID = {lesson.id: lesson for lesson in LESSONS}


def lesson_html(lesson: Lesson) -> str:
    """What a step tells and asks."""
    asked = ((LOOK, lesson.look), (QUESTION, lesson.question))
    parts = "".join(f"<p><b>{escape(title)}</b> {escape(words)}</p>" for title, words in asked)
    return f'<div class="spec lesson"><h3>{escape(lesson.title)}</h3><p>{escape(lesson.tell)}</p>{parts}</div>'


def answer_html(lesson: Lesson, found: Why | None) -> str:
    """The answer with the figures of a run, or the one without."""
    words = lesson.without
    if found is not None:
        values = {name: getattr(found, name) for name in Why.__slots__}
        words = lesson.answer.format(**values, refused=1 - found.alpha, draft_share=found.split["draft"])
    return f'<div class="spec lesson answer"><p><b>{escape(ANSWER)}</b> {escape(words)}</p></div>'


def teachers_html() -> str:
    """Timing and exercises."""
    head = "".join(f"<th>{escape(name)}</th>" for name in TEACHERS_COLUMNS)
    rows = "".join(
        f"<tr><td>{escape(lesson.title)}</td><td>{lesson.minutes}</td><td>{escape(lesson.exercise)}</td></tr>"
        for lesson in LESSONS
    )
    total = sum(lesson.minutes for lesson in LESSONS)
    table = f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    return note(TEACHERS_INTRO.format(minutes=total)) + table


class LessonsTab:
    """Components and wiring."""

    def __init__(self, context: Any):
        self.runs = context.runs
        gr.HTML(note(LESSONS_INTRO), elem_classes="lab-intro")
        titles = [(lesson.title, lesson.id) for lesson in LESSONS]
        step = gr.Radio(titles, value=LESSONS[0].id, label=STEP, elem_id="lesson-step", elem_classes="pills")
        told = gr.HTML(lesson_html(LESSONS[0]), elem_id="lesson-told", elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-actions"):
            set_up = gr.Button(SET_UP, variant="primary", scale=0, elem_id="lesson-set")
            replay = gr.Button(REPLAY, scale=0, elem_id="lesson-replay")
            reveal = gr.Button(REVEAL, scale=0, elem_id="lesson-reveal")
            said = gr.HTML("", elem_id="lesson-said")
        answer = gr.HTML("", elem_id="lesson-answer", elem_classes="lab-intro")
        with gr.Accordion(TEACHERS, open=False, elem_classes="card"):
            gr.HTML(teachers_html(), elem_classes="lab-intro")
        quiet = quiet_events() | {"queue": False}
        step.change(lambda chosen: [lesson_html(BY_ID[chosen]), "", ""], step, [told, said, answer], **quiet)
        controls = [context.inputs[name] for name in SETTING_NAMES]
        set_up.click(self._set_up, step, [*controls, said], **quiet)
        replay.click(self._replay, step, [context.shown["view"], said], **quiet)
        reveal.click(self._reveal, step, answer, **quiet)

    def _set_up(self, chosen: str) -> list:
        settings = DEFAULTS | BY_ID[chosen].settings
        settings["stop_strings"] = ""
        kept = ("target", "target_precision", "draft", "draft_precision", "quantized_precision")
        return [*(gr.skip() if name in kept else settings[name] for name in SETTING_NAMES), note(READY)]

    def _replay(self, chosen: str, request: gr.Request) -> list:
        name = BY_ID[chosen].recording
        if not name or not (FOLDER / name).is_file():
            return [gr.skip(), note(NO_RECORDING)]
        log, events = shipped_recording(name)
        self.runs.open(request.session_hash, events)
        return [log, note(REPLAYED)]

    def _reveal(self, chosen: str, request: gr.Request) -> str:
        own = self.runs.name(request.session_hash) != FIRST  # not what the page showed by itself
        events = self.runs.events(request.session_hash) if own else None
        return answer_html(BY_ID[chosen], explain(events or []))


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    LessonsTab(context)
