"""The simulators against their closed forms: within 1 %, and every wrong rule off by just what it must be."""

import numpy as np
import pytest

from playground.lab.simulator import RULES, exact_output, parse_weights, simulate_rounds, simulate_token
from playground.lab.wrong_rules import RULES as ENGINE_RULES
from playground.theory import predicted_speedup

CHANCE = 0.005  # total variation of 200,000 draws over a few tokens stays well below


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("gamma", [0, 1, 4, 16])
def test_simulated_rounds_meet_the_closed_forms_within_one_percent(alpha, gamma):
    found = simulate_rounds(alpha, gamma, 0.1, 0.02)
    assert found.mean_tokens == pytest.approx(found.expected, rel=0.01)
    assert found.speedup == pytest.approx(found.predicted, rel=0.01)
    assert found.predicted == pytest.approx(predicted_speedup(alpha, gamma, 0.1, 1 + 0.02 * gamma))
    assert sum(found.shares) == pytest.approx(1) == sum(found.formula)
    assert np.abs(np.array(found.shares) - found.formula).max() < 0.005


def test_best_gamma_and_break_even_move_the_right_way():
    cheap, dear = simulate_rounds(0.8, 4, 0.02, 0.0), simulate_rounds(0.8, 4, 0.4, 0.0)
    assert cheap.best > dear.best
    assert cheap.break_even < dear.break_even
    assert simulate_rounds(0.5, 4, 1.5, 0.0).break_even is None
    assert simulate_rounds(0.5, 4, 1.5, 0.0).best == 0


@pytest.mark.parametrize(("p", "q"), [("5 3 2", "2 3 5"), ("1, 0, 1", "0.2; 0.8; 0"), ("0.7 0.1 0.1 0.1", "1 1 1 1")])
def test_the_right_rule_gives_p_and_samples_follow_the_exact_forms(p, q):
    world = simulate_token(parse_weights(p), parse_weights(q))
    assert np.allclose(world.exact["right"], world.p)
    assert world.variation["right"] < CHANCE
    for rule in RULES:
        assert np.abs(np.array(world.sampled[rule]) - world.exact[rule]).sum() / 2 < CHANCE
        assert sum(world.exact[rule]) == pytest.approx(1)
    assert world.overlap == pytest.approx(np.minimum(world.p, world.q).sum())


def test_every_wrong_rule_is_visibly_off():
    world = simulate_token(parse_weights("5 3 2"), parse_weights("3 1 6"))
    assert all(world.variation[rule] > 0.05 for rule in RULES if rule != "right")
    assert exact_output("argmax-agrees", np.array([0.6, 0.4]), np.array([0.5, 0.5])).tolist() == [1.0, 0.0]


def test_equal_distributions_are_always_accepted():
    world = simulate_token(parse_weights("1 2 3"), parse_weights("1 2 3"))
    assert world.accept == (1.0, 1.0, 1.0) and world.overlap == pytest.approx(1)


def test_the_rules_are_those_of_the_engine():
    assert set(RULES) == set(ENGINE_RULES)


@pytest.mark.parametrize("text", ["", "1", "a b", "-1 2", "0 0", "nan 1", " ".join(["1"] * 13)])
def test_what_is_no_distribution_is_refused(text):
    with pytest.raises(ValueError, match="numbers"):
        parse_weights(text)


def test_both_must_speak_of_the_same_tokens():
    with pytest.raises(ValueError, match="same tokens"):
        simulate_token(parse_weights("1 1"), parse_weights("1 1 1"))
