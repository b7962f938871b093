"""The Generate tab: prompt, presets, one run at a time, its view.

Wires the controls to a Playground: a run streams its log to the view and to API clients alike. Stop
cancels the stream, waiting in the queue or not, and fetches the last line that the stream could no
longer send. Knows no model and no engine.
"""

import logging
import threading
import time
import uuid
from collections.abc import Iterator

import gradio as gr

from playground.config import DEFAULT_TARGET, RunSettings
from playground.events import Progress
from playground.presets import DEFAULT_PRESET, PRESETS, preset, preset_settings
from playground.ui.controls import SETTING_NAMES, Controls, choices_of, first_available, settings_from, target_words
from playground.ui.notes import note, preset_note, proposer_note, ready_line
from playground.ui.recordings import first_recording
from playground.ui.render import RunLog
from playground.ui.runs import Run
from playground.ui.share import ShareBar
from playground.ui.text import (
    API_DESCRIPTION,
    BROKEN,
    BROKEN_HINT,
    LABELS,
    NOT_STARTED,
    PLACEHOLDERS,
)
from playground.ui.view import settings_toggle, spec_view

log = logging.getLogger(__name__)

NAME = "Generate"
STOP_WAIT_S = 5.0  # a cancelled run leaves its log well within this
LOADING_POLL_S = 0.25
MAX_RUNS = 16  # streams at once, all but one waiting for their turn in the session
BATCH_S = 0.4  # each batch costs a browser some 20 ms, which the engine on the same cores could use
PAUSE_S_PER_CHARACTER = 5e-7  # a browser handles a long log more slowly: half a second apart at a million
PRESET_FIELDS = tuple(preset_settings(PRESETS[0]))


def stream_log(playground: object, settings: RunSettings, run: Run) -> Iterator[str]:
    """Yield the growing log of one run; leaves it finished in `run`, whatever happens."""
    out = RunLog(uuid.uuid4().hex[:12])
    batches = playground.stream(settings, BATCH_S, run.stop)
    shown, due = out.text, 0.0
    try:
        for events in batches:
            out.add(events)
            run.keep(events)
            if time.monotonic() >= due:
                shown, due = out.text, time.monotonic() + PAUSE_S_PER_CHARACTER * len(out.text)
            yield shown  # also when nothing is new, so that a Stop is noticed
        yield out.stop()
    except Exception:  # the page must never hang in the middle of a run
        log.exception("A run broke")
        yield out.fail(BROKEN, BROKEN_HINT)
    finally:
        run.close(out.stop())  # adds nothing to a log that has its last line
        batches.close()


class GenerateTab:
    """The components of the tab and what happens between them."""

    def __init__(self, context: object):
        self.playground, self.runs, self.page = context.playground, context.runs, context.page
        self._lock, self._known = threading.Lock(), None
        with gr.Row(elem_id="generate-grid"):
            with gr.Column(elem_id="prompt-column"):
                self._prompt()
            self.toggle = settings_toggle(elem_id="settings-toggle")
            with gr.Column(elem_id="settings-column"):
                self.controls = Controls(preset_settings(preset(DEFAULT_PRESET)))
            with gr.Column(elem_id="view-column"):
                self.view = spec_view(first_recording()[0], elem_id="view")
                context.shown["view"] = self.view
                context.inputs.update({"prompt": self.prompt} | self.controls.inputs)
                ShareBar(context, self.view)
        # gradio renews, with each message of a run, the progress state of every component that ever showed some,
        # copying all their properties, the whole log included. Nothing in the browser stands for a gr.State.
        self.unseen = {"show_progress": "hidden", "show_progress_on": gr.State()}
        self.quiet = self.unseen | {"queue": False, "api_visibility": "private"}
        self._wire_run()
        self._wire_choices()

    def _prompt(self) -> None:
        first = preset(DEFAULT_PRESET)
        with gr.Group(elem_classes="card"):
            titles = [(item.title, item.id) for item in PRESETS]
            self.presets = gr.Radio(
                titles, value=first.id, label=LABELS["preset"], elem_id="presets", elem_classes="pills"
            )
            self.prompt = gr.Textbox(
                first.prompt,
                label=LABELS["prompt"],
                placeholder=PLACEHOLDERS["prompt"],
                lines=7,
                max_lines=12,
                elem_id="prompt",
            )
            self.expect = gr.HTML(preset_note(first.task, first.expect), elem_id="expect")
            with gr.Row(elem_id="actions"):
                self.go = gr.Button(LABELS["generate"], variant="primary", elem_id="generate", scale=0)
                self.stop = gr.Button(LABELS["stop"], variant="stop", elem_id="stop", scale=0, interactive=False)
                self.ready = gr.HTML(ready_line(self.playground.loading()), elem_id="ready")

    def _wire_run(self) -> None:
        inputs = {"prompt": self.prompt} | self.controls.inputs
        buttons = [self.go, self.stop]
        begin = gr.on([self.go.click, self.prompt.submit], _busy, None, buttons, **self.quiet)
        run = begin.then(
            self._generate(),
            [inputs[name] for name in SETTING_NAMES],
            self.view,
            api_name="generate",
            api_description=API_DESCRIPTION,
            preprocess=False,
            concurrency_id="model",
            concurrency_limit=MAX_RUNS,
            **self.unseen,
        )
        halt = "() => window.dispatchEvent(new CustomEvent('spec-idle'))"
        # after an error the page follows `failure` only
        self.ends = [over(_idle, None, buttons, **self.quiet) for over in (run.then, run.failure)]
        for end in self.ends:
            end.then(None, js=halt, **self.quiet)
        self.stop.click(None, cancels=[run])  # first: listeners of one click run in order
        self.stop.click(self._stopped, None, self.view, **self.quiet)
        self.page.unload(self._forget)

    def _generate(self):
        """Return the function behind the endpoint; its parameter names are the API's."""
        playground, runs = self.playground, self.runs

        def generate(
            prompt,
            system_prompt,
            chat_template,
            target,
            target_precision,
            proposer,
            draft,
            draft_precision,
            quantized_precision,
            gamma,
            temperature,
            top_k,
            top_p,
            seed,
            max_new_tokens,
            stop_strings,
            ngram_min,
            ngram_max,
            gamma_policy,
            confidence_threshold,
            min_share,
            noise_alpha,
            corpus,
            greedy_draft,
            exit_layers,
            adapter,
            tree_nodes,
            tree_top_k,
            window,
            ngram_size,
            num_guesses,
            guess_tree,
            typical_epsilon,
            request: gr.Request,
        ):
            values = {name: value for name, value in locals().items() if name in SETTING_NAMES}
            try:
                settings = settings_from(values)
            except ValueError as error:
                raise gr.Error(str(error), title=NOT_STARTED, print_exception=False) from error
            run = runs.start(request.session_hash)
            run.steps = stream_log(playground, settings, run)
            yield from run.steps

        return generate

    def _stopped(self, request: gr.Request) -> str | dict:
        """Return the log that the run being cancelled leaves, for the view."""
        return self.runs.ended(request.session_hash, STOP_WAIT_S) or gr.skip()

    def _forget(self, request: gr.Request) -> None:
        self.runs.forget(request.session_hash)

    def _wire_choices(self) -> None:
        controls = self.controls
        inputs = controls.inputs
        about = [inputs[name] for name in ("target", "draft", "quantized_precision")]
        chosen = [inputs["proposer"], inputs["gamma_policy"]]
        changes = [component.change for component in chosen]
        gr.on(changes, self._show_proposer, [*chosen, *about], controls.proposer.shown, **self.quiet)
        changes = [component.change for component in about]
        gr.on(changes, self._note, [inputs["proposer"], *about], controls.proposer.note, **self.quiet)
        described = [inputs["draft"], controls.target_note]
        inputs["target"].change(self._describe_target, inputs["target"], described, **self.quiet)
        filled_in = [self.prompt, self.expect, *(inputs[name] for name in PRESET_FIELDS)]
        controls.precisions.wire(self, MAX_RUNS)
        self.presets.input(_choose_preset, self.presets, filled_in, **self.quiet)
        self.page.load(
            self._follow_loading,
            None,
            [self.ready, *controls.offer_outputs],
            concurrency_limit=None,
            api_visibility="private",
            **self.unseen,
        )

    def _show_proposer(self, proposer: str, policy: str, *about: str) -> list:
        return self.controls.proposer.show(proposer, policy, self.playground.facts(proposer, *about))

    def _note(self, proposer: str, *about: str) -> str:
        return proposer_note(proposer, self.playground.facts(proposer, *about))

    def options(self) -> object:
        """Return what can be chosen here; looked up once, since it imports torch and asks the network."""
        with self._lock:
            if self._known is None:
                self._known = self.playground.options()
            return self._known

    def _describe_target(self, target: str) -> tuple:
        drafts = self.playground.drafts_for(target or "")
        words = target_words(self.options(), target)
        return gr.update(choices=choices_of(drafts), value=first_available(drafts)), note(*words)

    def _follow_loading(self) -> Iterator[list]:
        """Offer what can be chosen here, and show how far loading is until it is done."""
        nothing = [gr.skip() for _ in self.controls.offer_outputs]
        yield [ready_line(self.playground.loading()), *nothing]
        options = self.options()
        updates = self.controls.offer(options, self.playground.drafts_for(DEFAULT_TARGET), self.playground.speeds)
        while True:
            state = self.playground.loading()
            yield [ready_line(state, options.environment), *updates]
            updates = nothing
            if not isinstance(state, Progress):
                return
            time.sleep(LOADING_POLL_S)


def _choose_preset(preset_id: str) -> list:
    item = preset(preset_id)
    settings = preset_settings(item)
    return [item.prompt, preset_note(item.task, item.expect), *(settings[name] for name in PRESET_FIELDS)]


def _busy() -> list:
    return [gr.update(interactive=False), gr.update(interactive=True)]


def _idle() -> list:
    return [gr.update(interactive=True), gr.update(interactive=False)]


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    GenerateTab(context)
