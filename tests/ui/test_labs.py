"""Race and exactness tabs: settings of lanes, and pictures that are right, escaped and say when to worry."""

from html import escape

import pytest

from playground.config import DEFAULT_TREE, PROPOSERS, RunSettings
from playground.events import Committed, Failed, Progress, Proposed, Verified
from playground.lab.exactness import Exactness, PositionResult, Row, Sampled
from playground.lab.race import Difference, LaneEvent, LaneResult
from playground.lab.statistics import Comparison
from playground.lab.wrong_rules import RULES
from playground.ui.exactness_view import ExactnessView
from playground.ui.lab_stream import follow
from playground.ui.race_tab import lane_choices, lane_settings
from playground.ui.race_view import RaceView
from playground.ui.text_labs import CAUGHT, NOT_CAUGHT, PASSED, RULE_LABELS, UNTESTED

SETTINGS = RunSettings("hello")


def test_every_proposer_can_race_and_every_rule_has_words():
    names = {value.split(":")[0] for _, value in lane_choices()}
    assert names == (set(PROPOSERS) - {"none"}) | {""}
    assert set(RULE_LABELS) == set(RULES)


def test_a_lane_with_a_tree_takes_the_size_chosen_or_the_usual_one():
    assert lane_settings(SETTINGS, "eagle:tree", 4) == {"proposer": "eagle", "gamma": 4, "tree_nodes": DEFAULT_TREE}
    assert lane_settings(RunSettings("x", tree_nodes=7), "medusa:tree", 3)["tree_nodes"] == 7
    assert lane_settings(RunSettings("x", tree_nodes=7), "eagle", 3)["tree_nodes"] == 0


def round_of(*texts, kind="accepted"):
    committed = tuple(Committed(i, kind, text, text, 0.5) for i, text in enumerate(texts))
    return Verified(1, (), committed, "", (), 1.0, 1.0, 5)


def raced(difference, precision="bfloat16", sampled=False):
    view = RaceView(["Plain", "n-gram"], 2, precision, sampled)
    events = [LaneEvent(0, 0, 100.0, round_of("a", "<b>")), LaneEvent(1, 0, 50.0, Proposed(1, (), 1.0))]
    events += [LaneEvent(1, 0, 50.0, round_of("a", "x", kind="bonus")), LaneEvent(1, 1, 9.0, round_of("zzz"))]
    results = [
        LaneResult(SETTINGS, (20.0, 22.0), (1.0, 1.0), 1.0, None),
        LaneResult(SETTINGS, (40.0, 33.0), (2.0, 1.5), 2.0, difference),
    ]
    return view([*events, results])


def test_the_picture_of_a_race_shows_clocks_tokens_and_results():
    html = raced(None)
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert "<strong>20.0</strong>" in html and "<strong>40.0</strong>" in html
    assert "1.75x (1.50x – 2.00x)" in html
    assert "zzz" not in html  # only the first repeat is shown
    assert "same tokens as lane 1" in html


@pytest.mark.parametrize(
    ("difference", "precision", "sampled", "words"),
    [
        (Difference(1, (3, 4), 0.01), "bfloat16", False, "near tie of bfloat16"),
        (Difference(1, (3, 4), 0.01), "float32", False, "would be a bug"),
        (Difference(1, (3, 4), 2.0), "bfloat16", False, "would be a bug"),
        (Difference(1, (3, 4), 2.0), "bfloat16", True, "only their distribution is the same"),
        (Difference(5, (3, -1), None), "bfloat16", False, "the end"),
    ],
)
def test_a_difference_says_whether_to_worry(difference, precision, sampled, words):
    assert words in raced(difference, precision, sampled)


def position(p_value):
    return PositionResult(1, True, Comparison(3.0, 2, p_value, 0.1, 0.05, 0.09), (Row(3, "<i>", 0.5, 0.4),))


@pytest.mark.parametrize(
    ("rule", "alpha", "p_value", "words"),
    [
        ("right", 0.5, 0.4, PASSED),
        ("right", None, 0.4, UNTESTED),
        ("argmax-agrees", 0.5, 1e-9, CAUGHT),
        ("argmax-agrees", 0.5, 0.4, NOT_CAUGHT),
    ],
)
def test_the_verdict_on_exactness(rule, alpha, p_value, words):
    view = ExactnessView()
    assert "3 of 40 texts" in view([Sampled(3, 40)])
    html = view([Exactness(rule, 20, alpha, (position(p_value),))])
    assert escape(words) in html
    assert "&lt;i&gt;" in html and "<i>" not in html


class Jobs:
    """A Playground whose labs say what they are given."""

    def __init__(self, *batches):
        self._batches = batches

    def lab(self, job, wait_s):
        yield from self._batches


def test_a_lab_shows_progress_then_its_picture_and_a_failure_in_words():
    news = list(follow(Jobs([Progress("loading", "Loading", 0.5)], [], ["a"]), None, lambda values: "".join(values)))
    assert "Loading · 50%" in news[1][0]
    assert news[-1] == ("", "a")
    news = list(follow(Jobs([Failed("No <memory>", "Take less.")]), None, lambda values: ""))
    assert "No &lt;memory&gt;" in news[-1][0]
