"""The Why tab: the newest run explained by its own numbers. Runs no model. All text is escaped."""

from html import escape
from typing import Any

import gradio as gr

from playground.lab.why import Why, explain
from playground.ui.lab_stream import quiet_events
from playground.ui.notes import note
from playground.ui.text_why import (
    BEST,
    EVEN,
    FORMULA,
    NO_RUN,
    RATES,
    RATES_TITLE,
    REFRESH,
    RESULT,
    SPLIT,
    SPLIT_TITLE,
    VERDICTS,
    WHY_INTRO,
    WHY_NAME,
)

NAME = WHY_NAME
UNTIMED_ONCE = ("sampling", "rollback")  # recordings of earlier versions have them in everything else


def why_html(found: Why | None) -> str:
    """The whole explanation."""
    if found is None:
        return note(NO_RUN)
    words = FORMULA.format(
        gamma=found.gamma,
        share=found.share_drafted,
        alpha=found.alpha,
        expected=found.expected,
        length=found.acceptance_length,
        draft=found.share_drafted * found.gamma * found.c,
        width=found.width,
        other=found.other,
    )
    result = RESULT.format(speedup=found.speedup, predicted=found.predicted)
    best = BEST[found.best > 0].format(best=found.best, speedup=found.best_speedup)
    even = EVEN[found.even is not None].format(even=found.even or 0.0)
    formula = (
        f"<code>E ÷ (γ·c + w) = {found.expected:.2f} ÷ ({found.share_drafted * found.gamma:.2f}·{found.c:.3f} + "
        f"{found.width:.2f}) = {found.predicted:.2f}×</code>"
    )
    slow = " slow" if found.speedup < 1 else ""
    return (
        f'<div class="spec why"><p class="verdict{slow}"><b>{escape(VERDICTS[found.verdict])}</b></p>'
        f'<div class="why-grid"><section class="position"><h3>{found.speedup:.2f}× <small>measured</small></h3>'
        f"<p>{escape(words)}</p><p>{formula}</p><p>{escape(result)} {escape(best)} {escape(even)}</p></section>"
        f'<section class="position"><h3>{escape(SPLIT_TITLE)}</h3>{_split(found)}</section>'
        f'<section class="position"><h3>{escape(RATES_TITLE)}</h3>{_rates(found)}</section></div></div>'
    )


def _split(found: Why) -> str:
    bar = "".join(
        f'<i class="{name}" style="width:{100 * share:.1f}%" title="{escape(SPLIT[name][0])} {share:.0%}"></i>'
        for name, share in found.split.items()
        if share > 0.001
    )
    rows = "".join(
        f'<li><i class="key {name}"></i><b>{escape(SPLIT[name][0])} {share:.0%}</b> {escape(SPLIT[name][1])}</li>'
        for name, share in found.split.items()
        if share > 0 or name not in UNTIMED_ONCE
    )
    return f'<div class="split" role="img" aria-label="{escape(SPLIT_TITLE)}">{bar}</div><ul class="keys">{rows}</ul>'


def _rates(found: Why) -> str:
    rows = "".join(
        f"<li><b>{escape(title)} {getattr(found, name):.3f}</b> {escape(words)}</li>" for name, title, words in RATES
    )
    return f'<ul class="keys">{rows}</ul>'


class WhyTab:
    """Components and wiring."""

    def __init__(self, context: Any):
        self.runs = context.runs
        gr.HTML(note(WHY_INTRO), elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-actions"):
            again = gr.Button(REFRESH, scale=0, elem_id="why-again")
        picture = gr.HTML(note(NO_RUN), elem_id="why-view", elem_classes="lab-intro")
        gr.on([context.tabs[NAME].select, again.click], self._explain, None, picture, **quiet_events(), queue=False)

    def _explain(self, request: gr.Request) -> str:
        return why_html(explain(self.runs.events(request.session_hash) or []))


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    WhyTab(context)
