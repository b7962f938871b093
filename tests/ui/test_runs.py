"""A run's stream as a plain generator: always ends with a reason, always lets go of the engine."""

import json
import threading
import time

from browser.double import Double

from playground.config import RunSettings
from playground.ui.generate import stream_log
from playground.ui.runs import MAX_SESSIONS, Run, Runs

FAST = RunSettings(prompt="a story", max_new_tokens=20)


def last_line(text):
    return json.loads(text.rstrip("\n").split("\n")[-1])


def test_a_run_ends_with_its_reason():
    texts = list(stream_log(Double(0.0), FAST, Run()))
    assert last_line(texts[-1])["reason"] == "length"


def test_closing_a_stream_frees_the_engine_and_leaves_a_log_that_says_stopped():
    double, run = Double(0.02), Run()
    stream = stream_log(double, RunSettings(prompt="long", max_new_tokens=2000), run)
    for _, text in zip(range(8), stream, strict=False):
        assert text
    stream.close()
    assert double.running == 0
    assert last_line(run.end(0.1))["reason"] == "stopped"
    assert last_line(run.text)["text"]


def test_a_stream_that_was_left_between_two_steps_is_closed_by_the_stop():
    double, runs = Double(0.02), Runs()
    run = runs.start("a")
    run.steps = stream_log(double, RunSettings(prompt="long", max_new_tokens=2000), run)
    next(run.steps)
    assert double.running == 1
    assert last_line(runs.ended("a", 2.0))["reason"] == "stopped"
    assert double.running == 0


def test_a_stream_at_work_sees_that_it_is_to_stop():
    double, run = Double(0.02), Run()
    run.steps = stream_log(double, RunSettings(prompt="long", max_new_tokens=2000), run)
    reader = threading.Thread(target=lambda: list(run.steps))
    reader.start()
    while not double.running:
        time.sleep(0.01)
    assert last_line(run.end(20.0))["reason"] == "stopped"
    reader.join(20.0)
    assert double.running == 0


def test_twenty_stopped_runs_leave_nothing_running():
    double, threads = Double(0.001), threading.active_count()
    for _ in range(20):
        stream = stream_log(double, RunSettings(prompt="long", max_new_tokens=2000), Run())
        next(stream)
        next(stream)
        stream.close()
    assert (double.num_runs, double.running) == (20, 0)
    assert threading.active_count() <= threads


def test_an_error_nobody_foresaw_ends_the_log_without_telling_secrets(caplog):
    texts = list(stream_log(Double(0.0), RunSettings(prompt="#raise"), Run()))
    end = last_line(texts[-1])
    assert end["e"] == "failed"
    assert "secret" not in texts[-1]
    assert "secret" in caplog.text


def test_a_session_finds_the_end_of_its_own_newest_run_only():
    runs = Runs()
    runs.start("a").close("old")
    first, second = runs.start("a"), runs.start("b")
    threading.Timer(0.05, first.close, ["mine"]).start()
    second.close("theirs")
    assert runs.ended("a", 2.0) == "mine"
    assert runs.ended("nobody", 2.0) is None


def test_waiting_for_a_run_that_does_not_end_gives_up():
    runs = Runs()
    runs.start("a")
    began = time.monotonic()
    assert runs.ended("a", 0.05) is None
    assert time.monotonic() - began < 1


def test_only_so_many_logs_are_kept_and_a_closed_page_keeps_none():
    runs = Runs()
    for number in range(MAX_SESSIONS + 5):
        runs.start(str(number)).close("text")
    assert runs.ended("0", 0) is None
    assert runs.ended("10", 0) == "text"
    runs.forget("10")
    assert runs.ended("10", 0) is None
