"""The Compare tab: prompts from tasks, typing or a file; a picture that is escaped and gives advice."""

from dataclasses import replace

import pytest

from playground.lab.compare import Result, Skipped
from playground.lab.compare_arms import OWN_TASK, Arm
from playground.ui.compare_tab import prompts_of
from playground.ui.compare_view import CompareView

RESULT = Result("<b>arm</b>", "k", "chat", "p", 0.0, 10.0, 20, 10, 20, 15, 10, (2,) * 10, 20.0, 80.0, 5.0, True)


def test_prompts_come_from_a_file_or_typing_or_tasks(tmp_path):
    (tmp_path / "p.txt").write_text("one\ntwo")
    assert prompts_of(["chat"], 1, "typed", str(tmp_path / "p.txt")) == {OWN_TASK: ["one", "two"]}
    assert prompts_of(["chat"], 1, " a \n\n b ", None) == {OWN_TASK: ["a", "b"]}
    assert list(map(len, prompts_of(["chat", "code"], 2, "", None).values())) == [2, 2]
    with pytest.raises(ValueError, match="Choose a task"):
        prompts_of([], 1, "", None)


def test_the_picture_has_advice_a_table_and_a_map():
    view = CompareView(4)
    assert "Nothing has been compared" in view([])
    html = view([RESULT, replace(RESULT, task="code", prompt="q", verify_ms=300.0), Skipped(Arm("x<y"), "no <model>")])
    assert "2 of 4 runs" in html
    assert "&lt;b&gt;arm" in html and "<b>arm" not in html and "no &lt;model&gt;" in html
    assert f"{RESULT.speedup:.2f}×" in html and "--rejected" in html and "--accepted" in html
    assert "do not speculate" in html
