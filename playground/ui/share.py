"""Save the run shown, open a saved one, replay a recorded one, copy a link to the settings.

Knows the sessions' runs and the view; no engine. A file goes to the browser as text and becomes a download
there; nothing is written on the server.
"""

import uuid
from collections.abc import Callable
from typing import Any

import gradio as gr

from playground import trace
from playground.ui.controls import SETTING_NAMES, settings_from
from playground.ui.lab_stream import download_script, quiet_events
from playground.ui.links import query_of, settings_of_query
from playground.ui.notes import note
from playground.ui.recordings import opened_recording, shipped, shipped_recording
from playground.ui.text_recordings import (
    LINK,
    LINK_BAD,
    LINK_COPIED,
    LINK_LEFT_OUT,
    LINK_UNKNOWN,
    NOT_OPENED,
    NOTHING_TO_SAVE,
    OPEN,
    OPENED,
    RECORDINGS,
    RECORDINGS_HINT,
    SAVE,
    SHARE_TITLE,
    TOO_LONG_TO_SAVE,
)

COPY = """(query) => {
  if (query === null) return;
  const address = `${location.origin}${location.pathname}?${query}`;
  navigator.clipboard?.writeText(address);
  history.replaceState(null, '', address);
}"""


class ShareBar:
    """The block below the view."""

    def __init__(self, context: Any, view: gr.HTML):
        self.runs, self.inputs = context.runs, context.inputs
        with gr.Accordion(SHARE_TITLE, open=False, elem_id="share", elem_classes="card"):
            with gr.Row(elem_classes="lab-actions"):
                save = gr.Button(SAVE, scale=0, elem_id="share-save")
                opened = gr.UploadButton(OPEN, file_types=[".jsonl"], scale=0, elem_id="share-open")
                link = gr.Button(LINK, scale=0, elem_id="share-link")
            chosen = gr.Dropdown(
                shipped(),
                value=None,
                label=RECORDINGS,
                info=RECORDINGS_HINT,
                elem_id="share-recordings",
                filterable=False,
            )
            said = gr.HTML("", elem_id="share-said")
        held, query = gr.Textbox(visible=False), gr.Textbox(visible=False)
        quiet = quiet_events() | {"queue": False}
        settings = [self.inputs[name] for name in SETTING_NAMES]
        save.click(self._save, None, [held, said], **quiet).then(
            None, held, None, js=download_script("run.jsonl"), **quiet
        )
        opened.upload(self._open, opened, [view, said], **quiet)
        chosen.input(self._replay, chosen, [view, said], **quiet)
        link.click(self._link, settings, [query, said], **quiet).then(None, query, None, js=COPY, **quiet)
        context.page.load(self._follow_link, None, [*settings, said], **quiet)

    def _save(self, request: gr.Request) -> tuple[str, str]:
        events = self.runs.events(request.session_hash)
        if not events:
            return "", note(TOO_LONG_TO_SAVE if events is None else NOTHING_TO_SAVE)
        return trace.to_text(events), ""

    def _open(self, path: str, request: gr.Request) -> tuple[str, str]:
        return self._shown(lambda: opened_recording(path, uuid.uuid4().hex[:12]), request)

    def _replay(self, name: str, request: gr.Request) -> tuple[str, str]:
        return self._shown(lambda: shipped_recording(name), request)

    def _shown(self, read: Callable[[], tuple[str, list]], request: gr.Request) -> tuple[str, str]:
        """Show a recording; from now on it is what the other tabs explain, and what is saved."""
        try:
            log, events = read()
        except (ValueError, OSError) as error:
            raise gr.Error(str(error), title=NOT_OPENED, print_exception=False) from error
        self.runs.open(request.session_hash, events)
        return log, note(OPENED)

    def _link(self, *given: object) -> tuple[str | None, str]:
        try:
            query, left_out = query_of(settings_from(dict(zip(SETTING_NAMES, given, strict=True))))
        except ValueError as error:
            return None, note(str(error))
        return query, note(LINK_COPIED + (LINK_LEFT_OUT.format(names=", ".join(left_out)) if left_out else ""))

    def _follow_link(self, request: gr.Request) -> list:
        """Set what the address names; say what it names in vain."""
        nothing = [gr.skip() for _ in SETTING_NAMES]
        try:
            found, unknown = settings_of_query(dict(request.query_params))
        except (ValueError, TypeError) as error:
            return [*nothing, note(LINK_BAD.format(reason=error))]
        if not found and not unknown:
            return [*nothing, gr.skip()]
        found = {name: "\n".join(value) if name == "stop_strings" else value for name, value in found.items()}
        said = note(LINK_UNKNOWN.format(names=", ".join(unknown))) if unknown else ""
        return [*(found.get(name, gr.skip()) for name in SETTING_NAMES), said]
