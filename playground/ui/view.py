"""The browser components: the view that draws a run from its log, and two small buttons.

The view's value is the log of `render`, one string that only grows. Its code lives in static/*.js and
is handed over once, together with the wording and the chart specifications; text of models never
passes through a template. Knows no run.
"""

import json
from pathlib import Path

import gradio as gr
import plotly

from playground.ui.charts import chart_specs, watch_chart_specs
from playground.ui.render import ROUND_COLUMNS
from playground.ui.text import FIGURES, KIND_DEFINITIONS, KIND_NAMES, SETTINGS_TOGGLE, THEME_TOGGLE, VIEW_WORDS
from playground.ui.text_why import WHY_NAME
from playground.ui.watch_log import COLUMNS as WATCH_COLUMNS

STATIC = Path(__file__).resolve().parents[2] / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
PLOTLY_PATH = f"gradio_api/file={PLOTLY.as_posix()}"
SCRIPTS = ("dom", "log", "tokens", "strip", "tree_layout", "tree", "details", "figures", "charts", "view")
WATCH_SCRIPTS = ("dom", "log", "charts", "watch")


def script(*names: str, **constants: object) -> str:
    """Return static scripts as one piece of code, after constants they read in capitals."""
    given = [f"const {name} = {json.dumps(value, ensure_ascii=False)};" for name, value in constants.items()]
    return "\n".join([*given, *((STATIC / f"{name}.js").read_text("utf-8") for name in names)])


def view_script() -> str:
    """Return the code of the view with everything it needs to know."""
    return script(
        *SCRIPTS,
        WORDS=VIEW_WORDS,
        FIGURES=FIGURES,
        WHY_TAB=WHY_NAME,
        KIND_NAMES=KIND_NAMES,
        KIND_DEFINITIONS=KIND_DEFINITIONS,
        CHARTS=chart_specs(),
        COLUMNS=list(ROUND_COLUMNS),
        PLOTLY_PATH=PLOTLY_PATH,
    )


def spec_view(log: str = "", **extra: object) -> gr.HTML:
    """Make the view of one run: status, figures, token strip, charts. Its value is the run's log, at first `log`."""
    frame = '<div class="spec"></div>'
    return gr.HTML(log, label="log", html_template=frame, js_on_load=view_script(), apply_default_css=False, **extra)


def watch_charts(**extra: object) -> gr.HTML:
    """Make the charts of a watched server. Its value is the log of `watch_log`."""
    code = script(
        *WATCH_SCRIPTS,
        WORDS=VIEW_WORDS,
        CHARTS=watch_chart_specs(),
        COLUMNS=list(WATCH_COLUMNS),
        PLOTLY_PATH=PLOTLY_PATH,
    )
    frame = '<div class="spec"></div>'
    return gr.HTML("", html_template=frame, js_on_load=code, apply_default_css=False, **extra)


def settings_toggle(**extra: object) -> gr.HTML:
    """Make the button that shows and hides the settings column on narrow screens."""
    frame = '<button type="button" aria-expanded="false"></button>'
    code = script("settings_toggle", LABEL=SETTINGS_TOGGLE)
    return gr.HTML("", html_template=frame, js_on_load=code, apply_default_css=False, **extra)


def page_head(html: str, **extra: object) -> gr.HTML:
    """Make the head of the page, with the button that changes the theme."""
    code = script("theme_toggle", LABEL=THEME_TOGGLE)
    return gr.HTML(html, js_on_load=code, apply_default_css=False, **extra)
