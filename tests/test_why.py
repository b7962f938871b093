"""A run explained by its own numbers: the formula holds, the split adds up, the sentence fits the cause."""

from dataclasses import replace
from pathlib import Path

import pytest

from playground import trace
from playground.events import Calibrated, Committed, Node, Proposed, Tested, Verified
from playground.lab.why import explain
from playground.theory import expected_tokens
from playground.ui.text_why import NO_RUN, VERDICTS
from playground.ui.why_tab import why_html

EXAMPLE = Path(__file__).parent / "traces" / "version-1.jsonl"


def events(kept=(4, 4, 0, 4), gamma=4, draft_ms=1.0, verify_ms=10.0, other_ms=0.1, drafted=True):
    """Rounds of a run whose plain step takes 10 ms."""
    yield Calibrated(100.0, 10.0, 12, False)
    for number, count in enumerate(kept, 1):
        size = gamma if drafted else 0
        nodes = tuple(Node(i, "x", i - 1, 1.0) for i in range(size))
        tested = [Tested(i, i, 0.9, 1.0, 0.1, i < count, 0.9) for i in range(min(count + 1, size))]
        made = [Committed(1, "accepted", "x", "", 0.9)] * min(count, size) + [Committed(2, "bonus", "y", "", 0.9)]
        yield Proposed(number, nodes, draft_ms)
        yield Verified(number, tuple(tested), tuple(made), "bonus", (), verify_ms, other_ms, 10)


def test_the_numbers_are_those_of_the_run():
    found = explain(events())
    assert found.gamma == 4 and found.share_drafted == 1
    assert found.alpha == pytest.approx(12 / 13)
    assert found.c == pytest.approx(1 / 4 / 10)
    assert found.width == pytest.approx(1.0)
    assert found.expected == pytest.approx(expected_tokens(12 / 13, 4))
    assert found.speedup == pytest.approx(found.acceptance_length * 10 / 11.1)
    assert found.predicted == pytest.approx(found.expected / 1.1)
    assert sum(found.split.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"draft_ms": 8.0}, "draft"),
        ({"verify_ms": 18.0}, "width"),
        ({"other_ms": 9.0}, "other"),
        ({"kept": (1, 0, 1, 0, 1), "draft_ms": 0.2}, "alpha"),
        ({"kept": (0, 0, 0), "draft_ms": 9.0}, "stop"),
        ({"kept": (2, 2, 2, 2), "gamma": 2, "draft_ms": 0.2}, "more"),
        ({"kept": (12,) * 5 + (3,), "gamma": 16, "draft_ms": 0.5}, "good"),
    ],
)
def test_the_sentence_names_what_costs_most(changes, verdict):
    assert explain(events(**changes)).verdict == verdict


def test_a_run_without_a_draft_or_a_baseline_is_not_explained():
    assert explain(events(drafted=False)) is None
    assert explain([event for event in events() if not isinstance(event, Calibrated)]) is None
    assert explain([]) is None


def test_a_recording_explains_itself():
    html = why_html(explain(trace.load(EXAMPLE)))
    assert "measured" in html and "÷" in html
    assert any(words.split(":")[0][:20] in html for words in VERDICTS.values())
    assert NO_RUN[:20] in why_html(None)


def test_the_rest_of_a_round_is_split_where_the_run_says_how():
    timed = [
        replace(event, sampling_ms=0.03, rollback_ms=0.02) if isinstance(event, Verified) else event
        for event in events()
    ]
    split = explain(timed).split
    assert sum(split.values()) == pytest.approx(1)
    assert [split[name] * 11.1 for name in ("sampling", "rollback", "python")] == pytest.approx([0.03, 0.02, 0.05])
    assert "rollback" in why_html(explain(timed)) and "rollback" not in why_html(explain(events()))
