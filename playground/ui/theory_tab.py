"""The Theory tab: sliders for the acceptance process, and one token under right and wrong rules.

Runs no model and never waits for one. Knows the simulator only, and the newest run of the session.
"""

from html import escape
from typing import Any

import gradio as gr

from playground.lab.simulator import NUM_ROUNDS, TokenWorld, parse_weights, simulate_rounds, simulate_token
from playground.lab.why import Why, explain
from playground.ui.lab_stream import quiet_events
from playground.ui.notes import note
from playground.ui.text_theory import (
    BREAK_EVEN,
    FORMULA,
    LAST_RUN_BUTTON,
    LAST_RUN_NOTE,
    NEVER_EVEN,
    NO_LAST_RUN,
    NO_SPECULATION,
    OVERLAP,
    P_LABEL,
    Q_LABEL,
    ROUNDS_TITLE,
    RULE_NAMES,
    SLIDERS,
    THEORY_INTRO,
    THEORY_NAME,
    TOKEN_COLUMNS,
    TOKEN_INTRO,
    TOKEN_TITLE,
    VARIATION,
    WEIGHTS_HINT,
)
from playground.ui.theory_charts import gamma_chart, length_chart, surface_chart, token_chart

NAME = THEORY_NAME
LIMITS = {"alpha": (0, 1, 0.7, 0.01), "gamma": (0, 16, 4, 1), "c": (0, 1, 0.1, 0.01), "width": (0, 0.5, 0.02, 0.01)}
FIRST_P, FIRST_Q = "0.5, 0.3, 0.2", "0.3, 0.1, 0.6"


def rounds_pictures(alpha: float, gamma: int, c: float, width: float, last: dict | None) -> tuple:
    """The formula in words and three charts."""
    gamma = int(gamma)
    found = simulate_rounds(alpha, gamma, c, width)
    words = FORMULA.format(
        expected=found.expected,
        rounds=NUM_ROUNDS,
        mean=found.mean_tokens,
        gamma=gamma,
        c=c,
        w=1 + width * gamma,
        predicted=found.predicted,
        speedup=found.speedup,
        best=found.best,
        stop="" if found.best else NO_SPECULATION,
        even=NEVER_EVEN if found.break_even is None else BREAK_EVEN.format(alpha=found.break_even),
    )
    charts = length_chart(found), gamma_chart(alpha, gamma, c, width), surface_chart(alpha, gamma, c, width, last)
    return (note(words), *charts)


def token_pictures(p: str, q: str) -> tuple:
    """A table and a chart of the one-token world; what is wrong with the weights in place of the table."""
    try:
        world = simulate_token(parse_weights(p), parse_weights(q))
    except ValueError as error:
        return f'<p class="note failed" role="alert">{escape(str(error))}</p>', gr.skip()
    return token_table(world), token_chart(world)


def token_table(world: TokenWorld) -> str:
    """The numbers behind the chart."""
    rows = zip(world.p, world.q, world.accept, world.residual, strict=True)
    body = "".join(
        f"<tr><td>{chr(ord('A') + index)}</td>{''.join(f'<td>{value:.3f}</td>' for value in row)}</tr>"
        for index, row in enumerate(rows)
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in TOKEN_COLUMNS)
    rules = "".join(
        f"<li><b>{escape(RULE_NAMES[rule])}</b> {escape(VARIATION.format(value=value))}</li>"
        for rule, value in world.variation.items()
    )
    return (
        f'<div class="lab-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<div class="note"><ul>{rules}</ul></div>{note(OVERLAP.format(value=world.overlap))}'
    )


def last_point(found: Why | None) -> dict | None:
    """Where a finished run lies on the surface: alpha, c, gamma, speedup, and what the formula says; None without."""
    if found is None:
        return None
    return {name: getattr(found, name) for name in ("alpha", "c", "gamma", "speedup", "predicted")}


class TheoryTab:
    """Components and wiring."""

    def __init__(self, context: Any):
        self.runs = context.runs
        gr.HTML(note(THEORY_INTRO), elem_classes="lab-intro")
        gr.HTML(f"<h2>{escape(ROUNDS_TITLE)}</h2>", elem_classes="lab-title")
        with gr.Row(elem_classes="lab-controls theory-sliders"):
            sliders = [self._slider(name) for name in SLIDERS]
        with gr.Row(elem_classes="lab-actions"):
            show = gr.Button(LAST_RUN_BUTTON, scale=0, elem_id="theory-last")
            told = gr.HTML("", elem_id="theory-told")
        words = gr.HTML("", elem_id="theory-words", elem_classes="lab-intro")
        with gr.Row(elem_classes="lab-charts"):
            charts = [gr.Plot(show_label=False, elem_classes="lab-chart") for _ in range(3)]
        gr.HTML(f"<h2>{escape(TOKEN_TITLE)}</h2>{note(TOKEN_INTRO)}", elem_classes="lab-title lab-intro")
        with gr.Row(elem_classes="lab-controls"):
            p = gr.Textbox(FIRST_P, label=P_LABEL, info=WEIGHTS_HINT, elem_id="theory-p")
            q = gr.Textbox(FIRST_Q, label=Q_LABEL, info=WEIGHTS_HINT, elem_id="theory-q")
        with gr.Row(elem_classes="lab-charts"):
            table = gr.HTML("", elem_id="theory-table", elem_classes="lab-intro")
            chart = gr.Plot(show_label=False, elem_classes="lab-chart")
        quiet = quiet_events() | {"queue": False}
        last = gr.State(None)
        opened = context.tabs[NAME].select
        changes = [opened, last.change, *(slider.change for slider in sliders)]
        gr.on(changes, rounds_pictures, [*sliders, last], [words, *charts], trigger_mode="always_last", **quiet)
        gr.on([opened, p.change, q.change], token_pictures, [p, q], [table, chart], **quiet)
        show.click(self._last, None, [last, told, sliders[0], sliders[2]], **quiet)

    @staticmethod
    def _slider(name: str) -> gr.Slider:
        low, high, value, step = LIMITS[name]
        label, info = SLIDERS[name]
        return gr.Slider(
            low, high, value=value, step=step, label=label, info=info, elem_id=f"theory-{name}", buttons=[]
        )

    def _last(self, request: gr.Request) -> tuple:
        point = last_point(explain(self.runs.events(request.session_hash) or []))
        if point is None:
            return None, note(NO_LAST_RUN), gr.skip(), gr.skip()
        return point, note(LAST_RUN_NOTE.format(**point)), round(point["alpha"], 2), round(min(1, point["c"]), 2)


def build(context: object) -> None:
    """Build the tab inside the page that is being laid out."""
    TheoryTab(context)
