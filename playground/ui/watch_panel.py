"""The part of the Export tab that watches a running server: fields, Start and Stop, the same as `watch`.

The server is asked through `lab.guarded_http` only; on a page that others can reach, private addresses are refused.
Knows no model. The API key goes to the server and nowhere else.
"""

import json
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from html import escape
from typing import Any

import gradio as gr

from playground.batches import Emit, batches
from playground.events import Failed
from playground.lab.guarded_http import WatchError
from playground.lab.watch import MAX_SECONDS, Question, Watch
from playground.ui.lab_stream import download_script, failed_note, quiet_events
from playground.ui.notes import note
from playground.ui.text import NOT_STARTED
from playground.ui.text_export import (
    CONNECTING,
    DONE,
    KEY,
    KEY_HINT,
    LOCAL_URL,
    MAX_TOKENS,
    MODEL,
    MODEL_HINT,
    ONLY_COUNTERS,
    ONLY_COUNTERS_HINT,
    PROMPT,
    PROMPT_HINT,
    SAVE,
    SECONDS,
    START,
    STOP,
    STOPPED,
    STOPPING,
    URL,
    URL_HINT,
    WATCH_EMPTY,
    WATCH_FILE,
    WATCH_INTRO,
    WATCH_TITLE,
    WATCHING,
)
from playground.ui.view import watch_charts
from playground.ui.watch_log import WatchLog
from playground.ui.watch_view import counters_html, watch_html

BATCH_S = 0.4
MAX_WATCHES = 4  # at once on one page
MAX_KEPT = 32
FROM_PAGE = ("prompt", "temperature", "chat_template")


class WatchPanel:
    """Components and wiring. The newest watch of each browser session is kept, so that it can be saved."""

    def __init__(self, context: Any):
        self.page = context.page
        self._watches: dict[str | None, tuple[Watch, threading.Event]] = {}
        gr.HTML(f"<h2>{escape(WATCH_TITLE)}</h2>{note(WATCH_INTRO)}", elem_classes="lab-title lab-intro")
        fields = self._fields()
        with gr.Row(elem_classes="lab-actions"):
            start = gr.Button(START, variant="primary", scale=0, elem_id="watch-start")
            stop = gr.Button(STOP, variant="stop", scale=0, elem_id="watch-stop")
            save = gr.Button(SAVE, scale=0, elem_id="watch-save")
            status = gr.HTML("", elem_id="watch-status")
        picture = gr.HTML(note(WATCH_EMPTY), elem_id="watch-view", elem_classes="lab-intro")
        charts = watch_charts(elem_id="watch-charts")
        counters = gr.HTML("", elem_id="watch-counters", elem_classes="lab-intro")
        held = gr.Textbox(visible=False)
        given = [*fields, *(context.inputs[name] for name in FROM_PAGE)]
        quiet = quiet_events()
        limits = {"concurrency_id": "watch", "concurrency_limit": MAX_WATCHES}
        start.click(self._watch, given, [status, picture, charts, counters], **limits, **quiet)
        stop.click(self._stop, None, status, queue=False, **quiet)
        saved = save.click(self._record, None, held, queue=False, **quiet)
        saved.then(None, held, None, js=download_script(WATCH_FILE), queue=False, **quiet)

    @staticmethod
    def _fields() -> list[gr.Component]:
        with gr.Row(elem_classes="lab-controls"):
            with gr.Column(min_width=240):
                url = gr.Textbox(LOCAL_URL, label=URL, info=URL_HINT, max_lines=1, elem_id="watch-url")
                model = gr.Textbox("", label=MODEL, info=MODEL_HINT, max_lines=1, elem_id="watch-model")
                key = gr.Textbox("", label=KEY, info=KEY_HINT, type="password", elem_id="watch-key")
            with gr.Column(min_width=240):
                prompt = gr.Textbox("", label=PROMPT, info=PROMPT_HINT, lines=4, max_lines=8, elem_id="watch-prompt")
                only = gr.Checkbox(False, label=ONLY_COUNTERS, info=ONLY_COUNTERS_HINT, elem_id="watch-only")
            with gr.Column(min_width=240):
                tokens = gr.Slider(16, 1024, value=160, step=16, label=MAX_TOKENS, buttons=[], elem_id="watch-tokens")
                seconds = gr.Slider(5, MAX_SECONDS, value=60, step=5, label=SECONDS, buttons=[])
        return [url, model, key, prompt, only, tokens, seconds]

    @property
    def is_public(self) -> bool:
        """Whether others than the machine's owner may use this page."""
        return "SPACE_ID" in os.environ or bool(self.page.share)

    def _watch(self, request: gr.Request, *given: Any) -> Iterator[tuple[str, str, str, str]]:
        url, model, key, prompt, only, tokens, seconds, own_prompt, temperature, chat = given
        asked = "" if only else prompt.strip() or own_prompt
        try:
            question = Question(url, asked, model.strip(), bool(chat), int(tokens), float(temperature), float(seconds))
        except (ValueError, TypeError) as error:
            raise gr.Error(str(error), title=NOT_STARTED, print_exception=False) from error
        watch, halt = Watch(question, key.strip(), self.is_public), threading.Event()
        self._watches.pop(request.session_hash, None)
        self._watches[request.session_hash] = watch, halt
        while len(self._watches) > MAX_KEPT:
            self._watches.pop(next(iter(self._watches)))[1].set()
        yield from follow_watch(watch, halt)

    def _stop(self, request: gr.Request) -> str | dict:
        """Let the watch end by itself, so that the counters are read once more."""
        _, halt = self._watches.get(request.session_hash, (None, None))
        if halt is None or halt.is_set():
            return gr.skip()
        halt.set()
        return note(STOPPING)

    def _record(self, request: gr.Request) -> str:
        watch, _ = self._watches.get(request.session_hash, (None, None))
        return json.dumps(watch.report(), ensure_ascii=False, indent=1) if watch else ""


def follow_watch(watch: Watch, halt: threading.Event) -> Iterator[tuple[str, str, str, str]]:
    """Watch in a thread and yield (status, picture, log of the charts, table of counters) a few times a second.

    Args:
        halt: set by Stop; set here when it is over or nobody looks any more.
    """
    log = WatchLog(uuid.uuid4().hex[:12])

    def work(emit: Emit) -> None:
        try:
            with closing(watch.run(halt)) as items:
                for item in items:
                    emit(item)
        except WatchError as error:
            emit(Failed(str(error)))

    failed, steps = None, batches(work, BATCH_S)
    try:
        yield note(CONNECTING), watch_html(watch.report(), False), log.text, ""
        for batch in steps:
            failed = next((item for item in batch if isinstance(item, Failed)), failed)
            log.add([item for item in batch if not isinstance(item, Failed)])
            seconds = max((item.seconds for item in (*watch.pieces[-1:], *watch.readings[-1:])), default=0.0)
            status = note(STOPPING if halt.is_set() else WATCHING.format(seconds=seconds) if seconds else CONNECTING)
            yield status, watch_html(watch.report(), False), log.text, ""
        log.end()
        done = note((STOPPED if halt.is_set() else DONE).format(seconds=watch.seconds))
        over, report = bool(watch.pieces or watch.readings or not failed), watch.report()
        table = counters_html(report) if over else ""
        yield failed_note(failed) if failed else done, watch_html(report, over), log.text, table
    finally:
        halt.set()
        steps.close()
