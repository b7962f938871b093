"""The round inspector on a recorded run: what it says of a round, and of the same round judged again."""

from dataclasses import replace

from playground.config import SamplingConfig
from playground.events import Committed, LogitRow, Logits, Node, Position, Proposed, Started, Tested, Verified
from playground.ui.inspector_view import chance, round_html
from playground.ui.recordings import first_recording
from playground.ui.round_facts import rounds_of
from playground.ui.text_inspector import CHANGED, NO_LOGITS, SAME_SETTINGS
from playground.ui.what_if_view import what_if_html

OWN = SamplingConfig(temperature=1.0, seed=7)


def rows(*logits):
    """A row of the tokens 1, 2, 3 with these logits."""
    return LogitRow((1, 2, 3), (" <b>", " two", " three"), logits)


def run(logits=True):
    """One round: two drafted, the first kept, the second refused, a residual; ten tokens before."""
    nodes = (Node(1, " <b>", -1, 0.5), Node(2, " two", 0, 0.5))
    tested = (Tested(0, 1, 0.6, 0.5, 0.3, True, 0.8), Tested(1, 2, 0.1, 0.5, 0.9, False, 0.4))
    committed = (Committed(1, "accepted", " <b>", " <b>", 0.6), Committed(3, "residual", " three", " three", 0.4))
    positions = (Position((), (), ()), Position((), (), ()))
    verified = Verified(1, tested, committed, "residual", positions, 1.0, 0.1, 11)
    settings = {"temperature": 1.0, "seed": 7}
    told = Logits(1, (rows(2.0, 1.0, 0.0), rows(0.0, 1.0, 2.0), rows(0.0, 0.0, 0.0)), (rows(0.0, 0.0, 0.0),) * 2)
    started = Started("a", settings, (1,), "x", "draft", 2, {})
    return [started, Proposed(1, nodes, 1.0), verified, *([told] if logits else [])]


def test_a_round_shows_its_numbers_its_ending_and_what_the_cache_gave_back():
    [facts] = rounds_of(run())
    html = round_html(facts, 1)
    assert "&lt;b&gt;" in html and "<b>" not in html.replace('<b style="', "")
    assert "2 tested, 1 accepted" in html and "the residual" in html
    assert "Before: 10. The pass fed 3, so 13 were held for a moment; 1 of them were rolled back. After: 12." in html
    assert "0.200<" in html  # min(1, 0.1 / 0.5)


def test_judging_again_needs_logits_and_other_settings():
    [facts] = rounds_of(run())
    assert SAME_SETTINGS in what_if_html(facts, OWN)
    assert NO_LOGITS in what_if_html(rounds_of(run(logits=False))[0], replace(OWN, temperature=0.5))
    cold = what_if_html(facts, replace(OWN, temperature=0.0))
    assert "accept 1 of 2" in cold and "three" in cold  # token 1 is the target's likeliest, token 2 is not


def test_judging_again_says_when_the_round_would_end_differently():
    [facts] = rounds_of(run())
    found = [what_if_html(facts, replace(OWN, seed=seed)) for seed in range(30)]
    assert any(CHANGED in html for html in found) and any(CHANGED not in html for html in found)
    assert all("<b>" not in html for html in found)


def test_every_round_of_the_shipped_recording_can_be_shown_and_judged_again():
    rounds = rounds_of(first_recording()[1])
    assert rounds
    for facts in rounds:
        assert f"Round {facts.proposed.round} of {len(rounds)}" in round_html(facts, len(rounds))
        html = what_if_html(facts, SamplingConfig(temperature=1.0, seed=3))
        assert "would accept" in html or NO_LOGITS in html


def test_a_probability_is_never_falsely_certain():
    assert [chance(value) for value in (0.0, 1.0, 0.99999, 1e-7, 0.25)] == ["0", "1", "> 0.999", "1e-07", "0.250"]
