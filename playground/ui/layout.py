"""The whole page: head, tabs, look; and how it is served.

A tab is a module with a NAME and a `build(context)`; adding one is adding it to TABS. Knows no model:
it gets a Playground (or something with the same methods) and passes it on.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from playground.ui import (
    compare_tab,
    cost_tab,
    exactness_tab,
    export_tab,
    generate,
    inspector_tab,
    lessons_tab,
    race_tab,
    theory_tab,
    why_tab,
)
from playground.ui.early_script import EarlyScript
from playground.ui.notes import header
from playground.ui.recordings import first_recording
from playground.ui.runs import Runs
from playground.ui.text import TITLE
from playground.ui.theme import page_css, page_theme
from playground.ui.view import PLOTLY, STATIC, page_head

TABS = (
    generate,
    inspector_tab,
    why_tab,
    race_tab,
    compare_tab,
    cost_tab,
    theory_tab,
    exactness_tab,
    export_tab,
    lessons_tab,
)
MAX_WAITING = 16


@dataclass(frozen=True, slots=True)
class Context:
    """What a tab may use.

    `inputs`: the component of each setting, filled in by the Generate tab. `tabs`: the tab of each name, whose
    selection a lab can wait for before it draws anything. `shown`: "view" → the view of the Generate tab, "tabs" →
    all tabs.
    """

    playground: Any
    runs: Runs
    page: gr.Blocks
    inputs: dict[str, gr.Component] = field(default_factory=dict)
    tabs: dict[str, gr.Tab] = field(default_factory=dict)
    shown: dict[str, gr.HTML | gr.Tabs] = field(default_factory=dict)


def build(playground: Any) -> gr.Blocks:
    """Lay out the page for one Playground."""
    gr.set_static_paths([PLOTLY])
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as page:
        page_head(header(), elem_id="head")
        context = Context(playground, Runs(first_recording()[1]), page)
        context.shown["tabs"] = gr.Tabs(elem_id="tabs", elem_classes="single" if len(TABS) == 1 else "many")
        with context.shown["tabs"]:
            for tab in TABS:
                with gr.Tab(tab.NAME, id=tab.NAME) as context.tabs[tab.NAME]:
                    tab.build(context)
    page.queue(max_size=MAX_WAITING)
    # gradio looks for new events a thousand times a second, which takes 5 % of a core and the interpreter's
    # lock from the engine; what it does on Windows is enough.
    page._queue.sleep_when_free, page._queue.progress_update_sleep_when_free = 0.05, 0.1
    return page


def launch_options() -> dict:
    """Return the arguments of `launch` that belong to the page's look and manners, not to a machine."""
    return {
        "theme": page_theme(),
        "css": page_css(),
        "favicon_path": icon(),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "show_error": True,
        "app_kwargs": {"middleware": [Middleware(EarlyScript, code=(STATIC / "quiet_frames.js").read_text("utf-8"))]},
    }


def icon() -> Path:
    """Return the page's icon."""
    return STATIC / "icon.svg"
