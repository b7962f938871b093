"""The block under the precision list: what to know of each format, tokens/s measured here, measuring them.

Also the labels of every list of precisions, with the figures of the model they belong to. Shows only
what was measured on this machine. Knows no engine: it asks a Playground.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from playground.events import Failed
from playground.speeds import Speed, Step
from playground.ui.notes import about_title, note, options_note, speed_number, speeds_table
from playground.ui.text import ABOUT_PRECISIONS, BROKEN, LABELS, SPEED_LABEL

log = logging.getLogger(__name__)
BATCH_S = 0.4
LISTS = ("target_precision", "draft_precision", "quantized_precision")
SpeedsOf = Callable[[str], dict[str, Speed]]


def with_speeds(options: list, speeds: dict[str, Speed]) -> list[tuple[str, str]]:
    """Return (label, id) pairs of what can be chosen here, with tokens/s where they were measured."""
    return [(_label(item, speeds.get(item.id)), item.id) for item in options if item.available]


def _label(item: Any, speed: Speed | None) -> str:
    if speed is None:
        return item.label
    name = item.label.partition(" (")[0]  # a figure says more than the remark, and there is room for one
    return SPEED_LABEL.format(name=name, speed=speed_number(speed.tokens_per_second))


def speed_updates(options: Any, target: str, draft: str, speeds_of: SpeedsOf) -> list:
    """Return updates of the three lists of precisions and of the table, with what is known by now."""
    speeds = speeds_of(target or "")
    return [
        gr.update(choices=with_speeds(options.precisions, speeds)),
        gr.update(choices=with_speeds(options.precisions, speeds_of(draft or ""))),
        gr.update(choices=with_speeds(options.quantized, speeds)),
        speeds_table(options.precisions, speeds),
    ]


def measuring(batches: Iterator[list], options: list, known: Callable[[], dict[str, Speed]]) -> Iterator[str]:
    """Yield the table while a measurement goes on: a state, a figure or a reason for each precision."""
    steps: dict[str, Step] = {}
    status = ""
    try:
        for events in batches:
            for event in events:
                if isinstance(event, Step):
                    steps[event.precision], status = event, ""
                else:
                    hint = event.hint if isinstance(event, Failed) else ""
                    status = f"{event.message} {hint}".strip()
            yield speeds_table(options, known(), steps) + note(status)  # also when nothing is new: a Stop is noticed
    except Exception:  # the page must never hang in the middle of it
        log.exception("A measurement broke")
        yield speeds_table(options, known()) + note(BROKEN)
    finally:
        batches.close()


class Precisions:
    """The components of the block."""

    def __init__(self):
        with gr.Accordion(ABOUT_PRECISIONS, open=False, elem_id="precisions", elem_classes="quiet") as self.block:
            self.notes = gr.HTML("", elem_id="precision-note")
            self.table = gr.HTML("", elem_id="precision-speeds")
            with gr.Row(elem_id="precision-actions"):
                self.measure = gr.Button(LABELS["measure"], size="sm", elem_id="measure", scale=0)
                self.stop = gr.Button(LABELS["stop"], size="sm", elem_id="measure-stop", scale=0, visible=False)

    def describe(self, options: list) -> list:
        """Return updates of title and notes for what this machine offers."""
        return [gr.update(label=about_title(options)), options_note(options)]

    @property
    def description(self) -> list:
        """The components that `describe` updates."""
        return [self.block, self.notes]

    def wire(self, tab: Any, max_runs: int) -> None:
        """Let the buttons measure and stop, taking turns with runs; show what is known, also of another model."""
        inputs, buttons = tab.controls.inputs, [self.measure, self.stop]
        models, lists = [inputs["target"], inputs["draft"]], [inputs[name] for name in LISTS]
        begin = self.measure.click(_busy, None, buttons, **tab.quiet)
        work = begin.then(
            self._measuring(tab),
            [inputs["target"], inputs["target_precision"]],
            self.table,
            concurrency_id="model",
            concurrency_limit=max_runs,
            api_visibility="private",
            **tab.unseen,
        )

        def known(target: str, draft: str) -> list:
            return speed_updates(tab.options(), target, draft, tab.playground.speeds)

        def labels(target: str, draft: str) -> list:
            return known(target, draft)[:-1]  # the table keeps what could not be measured

        for over in (work.then, work.failure):  # after an error the page follows `failure` only
            over(_idle, None, buttons, **tab.quiet).then(labels, models, lists, **tab.quiet)
        self.stop.click(None, cancels=[work])  # first: listeners of one click run in order
        changes = [self.stop.click, inputs["target"].change, inputs["draft"].change]
        gr.on(changes, known, models, [*lists, self.table], **tab.quiet)
        for end in tab.ends:  # a run measures plain decoding, too
            end.then(known, models, [*lists, self.table], **tab.quiet)

    @staticmethod
    def _measuring(tab: Any) -> Callable:
        def measure(target: str, precision: str) -> Iterator[str]:
            batches = tab.playground.measure(target or "", last=precision, wait_s=BATCH_S)
            yield from measuring(batches, tab.options().precisions, lambda: tab.playground.speeds(target or ""))

        return measure


def _busy() -> list:
    return [gr.update(interactive=False), gr.update(visible=True)]


def _idle() -> list:
    return [gr.update(interactive=True), gr.update(visible=False)]
