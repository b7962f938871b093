"""The log of a run: append-only JSON lines whose last line says how it ended."""

import json
import subprocess
import sys

import pytest
from browser.double import script

from playground.config import RunSettings
from playground.events import Committed, Failed, Finished, Node, Proposed, Tested, Verified
from playground.metrics import RunMetrics
from playground.ui.render import ROUND_COLUMNS, RunLog, figures


def events_of(prompt="a story", **settings):
    return list(script(RunSettings(prompt=prompt, **settings)))


def lines_of(text):
    return [json.loads(line) for line in text.split("\n") if line]


def test_every_addition_keeps_what_was_written_before():
    log, seen = RunLog("a"), ""
    for event in events_of():
        text = log.add([event])
        assert text.startswith(seen)
        seen = text
    assert log.closed


def test_two_runs_differ_in_their_first_line():
    assert RunLog("a").text != RunLog("b").text
    assert len(RunLog("a" * 12).text.split("\n")[0]) < 80


def test_the_last_line_holds_text_ids_figures_and_reason():
    events = events_of()
    log = RunLog("a")
    log.add(events)
    last = lines_of(log.text)[-1]
    assert (last["e"], last["reason"]) == ("end", events[-1].reason)
    assert last["text"] == events[-1].text
    assert last["token_ids"] == list(events[-1].token_ids)
    assert last["figures"]["num_tokens"] == len(events[-1].token_ids)


def test_figures_are_those_of_the_metrics():
    metrics = RunMetrics()
    for event in events_of():
        metrics.update(event)
    shown = figures(metrics)
    for name in ("speedup", "alpha", "acceptance_length", "tokens_per_second", "draft_efficiency"):
        assert shown[name] == pytest.approx(getattr(metrics, name), rel=1e-4)


def test_a_rate_without_a_denominator_is_empty_and_never_zero_or_one():
    shown = figures(RunMetrics())
    assert shown["alpha"] is shown["speedup"] is shown["acceptance_length"] is shown["tokens_per_second"] is None


def test_plain_decoding_has_no_alpha_and_one_token_a_round():
    log = RunLog("a")
    log.add(events_of(proposer="none"))
    last = lines_of(log.text)[-1]
    assert last["figures"]["alpha"] is None
    assert last["figures"]["acceptance_length"] == 1.0


def test_a_stopped_run_keeps_its_text_and_says_stopped():
    events = events_of()
    log = RunLog("a")
    log.add(events[: len(events) // 2])
    made = "".join(token[2] for line in lines_of(log.text) if line["e"] == "round" for token in line["committed"])
    last = lines_of(log.stop())[-1]
    assert (last["reason"], last["text"]) == ("stopped", made)
    assert made


def test_a_failed_run_keeps_its_text_and_says_why():
    log = RunLog("a")
    log.add(events_of("#fail now"))
    last = lines_of(log.text)[-1]
    assert last["e"] == last["reason"] == "failed"
    assert last["text"]
    assert "memory" in last["message"]


def test_nothing_is_written_after_the_last_line():
    log = RunLog("a")
    text = log.add([Finished("length", "", ())])
    assert log.add(events_of()) == log.stop() == log.fail("late") == text


def test_a_failure_before_the_start_is_a_whole_log():
    lines = lines_of(RunLog("a").add([Failed("No such model.", "Choose another.")]))
    assert [line["e"] for line in lines] == ["run", "failed"]
    assert (lines[1]["message"], lines[1]["hint"]) == ("No such model.", "Choose another.")


def test_line_breaks_markup_and_emoji_stay_inside_their_line():
    text = "a\nb\r\n\u2028 <script>${x}</script> `{{y}}` \\ 👩\u200d🚀"
    log = RunLog("a")
    log.add(events_of(f"#markup {text}"))
    assert lines_of(log.text)[-1]["text"] == text
    assert "<" not in log.text


def test_each_round_has_one_row_of_every_column():
    log = RunLog("a")
    log.add(events_of())
    rows = [line["row"] for line in lines_of(log.text) if line["e"] == "round"]
    assert all(len(row) == len(ROUND_COLUMNS) for row in rows)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))


def test_a_tree_is_written_with_its_parents_and_a_chain_without():
    def round_line(parents):
        nodes = tuple(Node(i, "x", parent, 1.0) for i, parent in enumerate(parents))
        tested = (Tested(0, 0, 0.1, 1.0, 0.5, False, 0.1), Tested(1, 1, 0.9, 1.0, 0.5, True, 0.9))
        committed = (Committed(1, "accepted", "x", "x", 0.8), Committed(5, "bonus", "y", "y", 0.8))
        log = RunLog("a")
        log.add([Proposed(1, nodes, 1.0), Verified(1, tested, committed, "bonus", (), 1.0, 1.0, 9)])
        return next(line for line in lines_of(log.text) if line["e"] == "round")

    tree, chain = round_line([-1, -1, 1]), round_line([-1, 0, 1])
    assert tree["parents"] == [-1, -1, 1]
    assert [test[0] for test in tree["tested"]] == [0, 1]
    assert len(tree["drafted"]) == 3
    assert tree["row"][1] == 1.0  # alpha: one depth tested, and kept
    assert "parents" not in chain


def test_the_log_stays_small_enough_to_send():
    log = RunLog("a")
    log.add(events_of(max_new_tokens=1000))
    assert len(log.text) < 1000 * 1500


def test_render_and_charts_need_neither_torch_nor_gradio():
    code = "import playground.ui.render, playground.ui.charts, playground.ui.notes, sys; "
    code += "assert not {'torch', 'gradio', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
