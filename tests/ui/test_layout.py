"""The page as laid out: opens without torch, keeps to itself, takes tabs from a list."""

import subprocess
import sys
from html import unescape

import gradio as gr
from browser.double import Double, Option

from playground.events import Failed, Progress
from playground.ui.layout import TABS, build, launch_options
from playground.ui.notes import machine, note, options_note, ready_line
from playground.ui.theme import page_css
from playground.ui.view import PLOTLY, SCRIPTS, STATIC, view_script


def test_the_page_builds_and_every_tab_has_a_name():
    assert build(Double()).fns
    assert next(tab.NAME for tab in TABS) == "Generate"


def test_building_the_page_imports_no_torch():
    code = (
        "from playground.session import Playground; from playground.ui.layout import build; import sys; "
        "build(Playground()); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_server_keeps_no_history_and_asks_nobody():
    options = launch_options()
    assert options["run_history"] is False
    assert options["ssr_mode"] is False


def test_scripts_and_style_sheets_exist_and_fetch_nothing_from_elsewhere():
    assert PLOTLY.is_file()
    for text in (view_script(), page_css(), *((STATIC / f"{name}.js").read_text("utf-8") for name in SCRIPTS)):
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert "https://" not in text


def test_text_of_models_never_goes_through_markup_in_the_browser():
    for path in STATIC.glob("*.js"):
        code = path.read_text("utf-8")
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in code, f"{path.name} uses {way}"


def test_everything_in_notes_is_escaped():
    nasty = "<img src=x onerror=alert(1)>"
    options = [Option("a", nasty, False, nasty)]
    lines = [
        note(nasty),
        options_note(options),
        ready_line(Failed(nasty, nasty)),
        ready_line(Progress("x", nasty, 0.5)),
    ]
    for html in [*lines, ready_line(None, {"device": "cpu", "device_name": nasty})]:
        assert "<img" not in html
        assert "<img" in unescape(html)


def test_the_ready_line_says_how_far_loading_is():
    assert "43%" in ready_line(Progress("loading", "Loading", 0.43))
    assert "unknown" in ready_line(Progress("loading", "Loading", None))
    assert 'role="alert"' in ready_line(Failed("No network.", "Try later."))


def test_the_machine_is_named_in_a_few_words():
    assert machine({"device": "cpu", "device_name": "AMD EPYC", "cores": 2}) == "AMD EPYC, 2 cores"
    assert machine({"device": "cuda", "device_name": "NVIDIA H200", "cores": 16}) == "NVIDIA H200"
    assert machine({}) == ""


def test_no_event_makes_gradio_copy_components_with_each_message_of_a_run():
    page = build(Double())
    for event in page.fns.values():
        if event.fn is not None and event.outputs:
            assert event.show_progress == "hidden", event.name
            assert [type(shown) for shown in event.show_progress_on or ()] == [gr.State], event.name


def test_the_server_looks_for_new_events_seldom():
    queue = build(Double())._queue
    assert {"sleep_when_free", "progress_update_sleep_when_free"} <= set(vars(gr.Blocks()._queue))
    assert queue.sleep_when_free >= 0.05
    assert queue.progress_update_sleep_when_free >= 0.1
