"""The Export tab without a browser: snippets that follow the settings, metrics as JSON, a server that is watched."""

import json
import threading
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from fake_server import WORDS, serving

from playground import trace
from playground.config import DEFAULTS
from playground.lab.export import ENGINES
from playground.lab.watch import Question, Watch
from playground.report import Recorder
from playground.ui.charts import watch_chart_specs
from playground.ui.controls import SETTING_NAMES
from playground.ui.export_tab import snippet_updates
from playground.ui.export_view import metrics_json
from playground.ui.watch_log import COLUMNS, WatchLog
from playground.ui.watch_panel import FROM_PAGE, WatchPanel, follow_watch

EXAMPLE = Path(__file__).parents[1] / "traces" / "version-1.jsonl"


def updates(engine, **changes):
    values = DEFAULTS | {"prompt": "hi", "stop_strings": ""} | changes
    return snippet_updates(engine, *(values[name] for name in SETTING_NAMES))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_snippet_follows_engine_and_settings(engine):
    code, notes, line = updates(engine, proposer="ngram", gamma=7)
    assert code["visible"] and "7" in code["value"]
    assert code["language"] == ("python" if engine == "transformers" else "shell")
    assert "Names of fields" in notes and "γ 7" in line
    assert updates(engine, proposer="ngram", gamma=3)[0]["value"] != code["value"]


def test_where_there_is_no_snippet_the_reason_stands_in_its_place():
    code, notes, _ = updates("sglang", proposer="medusa")
    assert not code["visible"] and "No snippet: SGLang has no Medusa heads." in notes
    code, notes, _ = updates("vllm", prompt="")
    assert not code["visible"] and "prompt" in notes.lower()
    code, notes, _ = updates("vllm", proposer="draft", draft="<img src=x>", gamma=0)
    assert not code["visible"] and "<img" not in notes


def test_the_metrics_are_those_of_the_run_and_lists_keep_to_a_line():
    events = list(trace.load(EXAMPLE))
    recorder = Recorder()
    for event in events:
        recorder(event)
    record, text = recorder.report(), metrics_json(events)
    found = json.loads(text)
    assert found["metrics"]["speculative_decoding"] == json.loads(json.dumps(record["vllm"]))
    assert found["usage"]["completion_tokens"] == record["num_committed"]
    assert sum("per_step_accepted" in line and line.rstrip(",").endswith("]") for line in text.splitlines()) == 1


def test_every_trace_of_the_watch_charts_reads_a_column_of_the_log():
    columns = {"rounds": set(COLUMNS), "positions": {"position", "acceptance"}}
    for spec in watch_chart_specs():
        assert spec["title"] and spec["empty"] and len(spec["names"]) == len(spec["traces"])
        for item in spec["traces"]:
            assert {item["x"], item["y"]} <= columns[spec["source"]]


def lines(log):
    return [json.loads(line) for line in log.splitlines()]


def test_a_watched_server_is_shown_with_text_figures_counters_and_a_log_for_the_charts():
    with serving(round_s=0.25) as server:
        server.count(1)
        steps = list(follow_watch(Watch(Question(server.url, "hi")), threading.Event()))
    status, picture, log, table = steps[-1]
    assert "Done after" in status and "vLLM at" in picture and "tiny/model" in picture
    assert "&lt;b&gt;kappa" in picture and "<b>kappa" not in picture
    assert "<strong>2.50</strong>" in picture and "<strong>50%</strong>" in picture
    assert "<td>rounds (drafts)</td><td>1</td><td>5</td><td>4</td>" in table and "0.667" in table
    assert all(later[2].startswith(sooner[2]) for sooner, later in pairwise(steps))
    assert any(WORDS[0].strip() in step[1] and "kappa" not in step[1] for step in steps)
    rows = [dict(zip(COLUMNS, line["row"], strict=True)) for line in lines(log) if line["e"] == "row"]
    assert rows[-1]["length"] == 2.5 and rows[-1]["efficiency"] == 0.5 and rows[-1]["answer_speed"] > 0
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)
    positions = [line["columns"] for line in lines(log) if line["e"] == "positions"]
    assert positions[-1] == {"position": [1, 2, 3], "acceptance": [0.75, 2 / 3, 0.5]}
    assert lines(log)[-1] == {"e": "end"}


def test_a_server_that_counts_only_rounds_and_tokens_has_a_length_all_the_same():
    with serving("sglang", round_s=0.05) as server:
        watch = Watch(Question(server.url, "hi"))
        log = WatchLog("x")
        log.add(list(watch.run(threading.Event())))
    row = dict(zip(COLUMNS, lines(log.text)[-1]["row"], strict=True))
    assert row["length"] == 2.5 and row["efficiency"] is None and row["length_now"] is not None


def test_stop_reads_the_counters_once_more_and_a_closed_page_hangs_up():
    with serving(round_s=0.3) as server:
        halt = threading.Event()
        for step in follow_watch(Watch(Question(server.url, "hi")), halt):
            if "Watching" in step[0]:
                halt.set()
        assert "Stopped after" in step[0] and "rounds (drafts)" in step[3]
        assert server.gone.wait(5)
    with serving(round_s=0.3) as server:
        steps, halt = follow_watch(Watch(Question(server.url, "hi")), threading.Event()), threading.Event()
        next(steps)
        while "Watching" not in next(steps)[0]:
            pass
        steps.close()
        assert server.gone.wait(5)


def test_what_cannot_be_watched_is_said_in_a_sentence():
    with serving() as server:
        address = server.url
    for url, words in (
        (address, "No server answers"),
        ("ftp://x", "Only http"),
        ("http://169.254.169.254", "metadata"),
    ):
        status = list(follow_watch(Watch(Question(url, "hi")), threading.Event()))[-1][0]
        assert 'role="alert"' in status and words in status


@pytest.fixture
def panel():
    with gr.Blocks() as page:
        inputs = {"prompt": gr.Textbox(), "temperature": gr.Slider(), "chat_template": gr.Checkbox()}
        assert set(inputs) == set(FROM_PAGE)
        return WatchPanel(SimpleNamespace(page=page, inputs=inputs))


def follow(panel, url, *, key="", prompt="", only=False):
    request = SimpleNamespace(session_hash="s")
    return list(panel._watch(request, url, "", key, prompt, only, 32, 10, "the page's prompt", 0.0, True)), request


def test_a_page_on_a_space_refuses_private_addresses_and_one_at_home_does_not(panel, monkeypatch):
    monkeypatch.delenv("SPACE_ID", raising=False)
    with serving() as server:
        assert "Done after" in follow(panel, server.url)[0][-1][0]
        monkeypatch.setenv("SPACE_ID", "someone/space")
        steps, _ = follow(panel, server.url)
        assert "open to everybody" in steps[-1][0] and len(server.bodies) == 1
        monkeypatch.delenv("SPACE_ID")
        panel.page.share = True
        assert "open to everybody" in follow(panel, server.url)[0][-1][0]


def test_the_pages_prompt_is_asked_where_none_is_typed_and_the_key_is_in_no_record(panel, monkeypatch):
    monkeypatch.delenv("SPACE_ID", raising=False)
    with serving() as server:
        server.key = "sk-secret"
        steps, request = follow(panel, server.url, key=" sk-secret ")
        follow(panel, server.url, key="sk-secret", prompt="mine")
        assert [body["messages"][0]["content"] for body in server.bodies] == ["the page's prompt", "mine"]
    record = panel._record(request)
    assert json.loads(record)["num_tokens"] == 10
    assert "sk-secret" not in record + repr(steps)
    assert panel._record(SimpleNamespace(session_hash="other")) == ""
