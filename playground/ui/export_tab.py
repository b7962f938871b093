"""The Export tab: the chosen setting for other engines, the newest run's metrics for their tools.

Below it, the panel that watches a running server. Knows no engine and runs no model.
"""

from html import escape
from typing import Any

import gradio as gr

from playground.lab.export import LABELS as ENGINE_LABELS
from playground.lab.export import export
from playground.ui.controls import SETTING_NAMES, settings_from
from playground.ui.export_view import export_notes, metrics_json, reason_note, setting_line
from playground.ui.lab_stream import download_script, quiet_events
from playground.ui.notes import note
from playground.ui.text_export import (
    DOWNLOAD,
    ENGINE,
    EXPORT_INTRO,
    EXPORT_NAME,
    METRICS_FILE,
    METRICS_INTRO,
    METRICS_LABEL,
    METRICS_TITLE,
    NO_RUN,
    REFRESH,
    SNIPPET,
    TOO_LONG,
)
from playground.ui.watch_panel import WatchPanel

NAME = EXPORT_NAME
FIRST = "vllm"


def snippet_updates(engine: str, *given: object) -> tuple:
    """The snippet for these settings, its notes, and a line that names the settings."""
    try:
        settings = settings_from(dict(zip(SETTING_NAMES, given, strict=True)))
    except ValueError as error:
        return gr.update(visible=False), reason_note(str(error)), ""
    found = export(settings, engine)
    code = gr.update(value=found.text, language=found.language, visible=bool(found.text))
    return code, export_notes(found), setting_line(settings)


class ExportTab:
    """Components and wiring."""

    def __init__(self, context: Any):
        self.runs = context.runs
        gr.HTML(note(EXPORT_INTRO), elem_classes="lab-intro")
        engines = [(label, name) for name, label in ENGINE_LABELS.items()]
        engine = gr.Radio(engines, value=FIRST, label=ENGINE, elem_id="export-engine", elem_classes="pills")
        line = gr.HTML("", elem_id="export-line", elem_classes="lab-intro")
        code = gr.Code("", language="shell", label=SNIPPET, lines=1, wrap_lines=True, **_code("export-snippet"))
        notes = gr.HTML("", elem_id="export-notes", elem_classes="lab-intro")
        self._wire_snippet(context, engine, [code, notes, line])
        self._metrics(context)
        WatchPanel(context)

    def _wire_snippet(self, context: Any, engine: gr.Radio, shown: list) -> None:
        inputs = [context.inputs[name] for name in SETTING_NAMES]
        quiet = quiet_events() | {"queue": False, "trigger_mode": "always_last"}
        # the settings change on another tab only, so coming here is the moment to read them
        gr.on([context.tabs[NAME].select, engine.change], snippet_updates, [engine, *inputs], shown, **quiet)

    def _metrics(self, context: Any) -> None:
        gr.HTML(f"<h2>{escape(METRICS_TITLE)}</h2>{note(METRICS_INTRO)}", elem_classes="lab-title lab-intro")
        with gr.Row(elem_classes="lab-actions"):
            again = gr.Button(REFRESH, scale=0, elem_id="export-refresh")
            download = gr.Button(DOWNLOAD, scale=0, elem_id="export-download")
            said = gr.HTML(note(NO_RUN), elem_id="export-said")
        code = gr.Code(
            "",
            language="json",
            label=METRICS_LABEL,
            lines=1,
            max_lines=24,
            wrap_lines=True,
            visible=False,
            **_code("export-metrics"),
        )
        quiet = quiet_events() | {"queue": False}
        gr.on([context.tabs[NAME].select, again.click], self._newest, None, [code, said], **quiet)
        fresh = download.click(self._newest, None, [code, said], **quiet)
        fresh.then(None, code, None, js=download_script(METRICS_FILE), **quiet)

    def _newest(self, request: gr.Request) -> tuple:
        events = self.runs.events(request.session_hash)
        if not events:
            return gr.update(value="", visible=False), note(TOO_LONG if events is None else NO_RUN)
        return gr.update(value=metrics_json(events), visible=True), ""


def _code(name: str) -> dict:
    return {"interactive": False, "show_line_numbers": False, "buttons": ["copy"], "elem_id": name}


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    ExportTab(context)
